import pytest

from formulacode_dagster.measurement.cores import Cores


def test_a_core_is_taken_as_long_as_the_block_and_free_afterwards():
    cores, seen = Cores(), []

    def choose(taken):
        seen.append(list(taken))
        return len(taken)

    with cores.reserved(choose) as first, cores.reserved(choose) as second:
        assert (first, second) == (0, 1)
    with pytest.raises(RuntimeError), cores.reserved(choose):
        raise RuntimeError
    with cores.reserved(choose):
        pass
    assert seen == [[], [0], [], []]
