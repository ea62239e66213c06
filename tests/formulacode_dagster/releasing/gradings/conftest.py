from tests.formulacode_dagster.releasing.attacks.conftest import tasks

__all__ = ["tasks"]
