"""deploy/kubernetes: held to the schemas that Kubernetes publishes. No cluster has run any of it."""

from __future__ import annotations

import copy
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import dagster as dg
import pytest
import yaml
from dagster._core.code_pointer import ModuleCodePointer
from dagster._core.launcher import RunLauncher, WorkerStatus
from dagster._core.origin import JobPythonOrigin, RepositoryPythonOrigin
from dagster._serdes import ConfigurableClassData

from formulacode_dagster.models.items import Stage
from formulacode_dagster.orchestration.orphans import process_tag
from formulacode_dagster.orchestration.placement import run_tags
from resources.documentation import SETTINGS
from tests.support.deployments import DEPLOY, dagster_yaml, most_connections
from tests.support.sampling import sampled

pytestmark = pytest.mark.slow

FOLDER = DEPLOY / "kubernetes"
KUSTOMIZATION = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())
IMAGE = "registry.example/formulacode/platform:1"
VERSIONS = sampled(("1.30", "1.33", "1.37"), most=1, of=__name__)
MANIFESTS: list[Any] = [
    document for name in KUSTOMIZATION["resources"] for document in yaml.safe_load_all((FOLDER / name).read_text())
]
BUILD_POOL: list[Any] = [
    document
    for name in yaml.safe_load((FOLDER / "build-pool" / "kustomization.yaml").read_text())["resources"]
    for document in yaml.safe_load_all((FOLDER / "build-pool" / name).read_text())
]


def pods_of(manifests: list[Any]) -> dict[str, Any]:
    """The pods of *manifests*, by the name of what makes them."""
    return {
        manifest["metadata"]["name"]: manifest["spec"]["template"]["spec"]
        for manifest in manifests
        if manifest["kind"] in ("Deployment", "StatefulSet")
    }


PODS = pods_of(MANIFESTS)
SECRET = {setting.name for setting in SETTINGS if setting.secret}


def validate(manifest: Any, version: str) -> None:
    import kubernetes_validate

    kubernetes_validate.validate(manifest, version, strict=True)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_manifest_holds_to_the_published_schema(version: str) -> None:
    assert (len(MANIFESTS), len(BUILD_POOL)) == (19, 4)
    for manifest in (*MANIFESTS, *BUILD_POOL):
        validate(manifest, version)


def test_a_field_that_is_none_is_refused() -> None:
    (wrong,) = (copy.deepcopy(manifest) for manifest in MANIFESTS if manifest["metadata"]["name"] == "daemon")
    wrong["spec"]["template"]["spec"]["containers"][0]["resource"] = {}
    with pytest.raises(Exception, match="'resource' was unexpected"):
        validate(wrong, VERSIONS[0])


@pytest.fixture
def launcher(tmp_path: Path, dagster_instance: dg.DagsterInstance) -> Any:
    """The one that the configuration in git names, as Dagster makes it, before a cluster that answers nothing."""
    from dagster_k8s.client import DagsterKubernetesClient

    nobody = {
        "current-context": "none",
        "contexts": [{"name": "none", "context": {"cluster": "none", "user": "none"}}],
        "clusters": [{"name": "none", "cluster": {"server": "http://127.0.0.1:9"}}],
        "users": [{"name": "none", "user": {}}],
    }
    (tmp_path / "kubeconfig").write_text(json.dumps(nobody))
    named = dagster_yaml(FOLDER)["run_launcher"]
    config = named["config"] | {"load_incluster_config": False, "kubeconfig_file": str(tmp_path / "kubeconfig")}
    made: Any = ConfigurableClassData(named["module"], named["class"], yaml.safe_dump(config)).rehydrate(RunLauncher)
    made._api_client = DagsterKubernetesClient.production_client(MagicMock(), MagicMock())
    made.register_instance(dagster_instance)
    return made


@pytest.fixture
def job(launcher: Any, dagster_instance: dg.DagsterInstance) -> Any:
    """The job that Dagster would make for a run that measures."""
    import kubernetes.client

    origin = JobPythonOrigin(
        "measurements_only",
        RepositoryPythonOrigin("python", ModuleCodePointer("formulacode_dagster.definitions", "defs"), IMAGE, None, {}),
    )
    run = dagster_instance.create_run_for_job(_measuring, tags=run_tags(Stage.MEASUREMENTS), job_code_origin=origin)
    launcher._launch_k8s_job_with_args("dagster-run-1", ["dagster", "api", "execute_run"], run)
    return kubernetes.client.ApiClient().sanitize_for_serialization(
        launcher._api_client.batch_api.create_namespaced_job.call_args.kwargs["body"]
    )


@dg.job
def _measuring() -> None:
    """Stands for a run that measures."""


@pytest.mark.parametrize("version", VERSIONS)
def test_the_job_of_a_run_holds_to_the_published_schema(job: Any, version: str) -> None:
    validate(job, version)


def test_the_job_of_a_run_asks_for_what_its_stage_takes_and_has_no_right(job: Any) -> None:
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["image"] == IMAGE
    assert container["resources"] == {"requests": {"cpu": "500m", "memory": "2Gi"}, "limits": {"memory": "4Gi"}}
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert {"secretRef": {"name": "formulacode-settings"}} in container["envFrom"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["serviceAccountName"] == "formulacode-run"
    # Dagster relaunches a lost run, not the cluster
    assert job["spec"]["backoffLimit"] == 0


def test_a_run_of_the_command_line_is_not_looked_for_in_the_cluster(
    launcher: Any, dagster_instance: dg.DagsterInstance
) -> None:
    run = dagster_instance.create_run_for_job(_measuring, status=dg.DagsterRunStatus.STARTED, tags=process_tag())
    assert launcher.check_run_worker_health(run).status is WorkerStatus.RUNNING
    assert not launcher.terminate(run.run_id)
    assert dagster_instance.all_logs(run.run_id) == []
    assert not launcher._api_client.batch_api.method_calls


def test_the_build_engine_starts_below_its_images_entrypoint() -> None:
    (engine,) = PODS["builder"]["containers"]
    assert "command" not in engine
    assert engine["args"][0] == "dockerd"


def test_postgres_has_a_connection_for_all_that_runs_may_take() -> None:
    (postgres,) = PODS["postgres"]["containers"]
    (said,) = (option for option in postgres["args"] if option.startswith("max_connections="))
    runs = dagster_yaml(FOLDER)["concurrency"]["runs"]["max_concurrent_runs"]
    assert int(said.partition("=")[2]) >= most_connections(runs)


def test_who_launches_a_run_does_not_choose_its_pod() -> None:
    from dagster_k8s.container_context import K8sContainerContext
    from dagster_k8s.job import UserDefinedDagsterK8sConfig

    allowed = dagster_yaml(FOLDER)["run_launcher"]["config"]["only_allow_user_defined_k8s_config_fields"]
    context = K8sContainerContext(run_k8s_config=UserDefinedDagsterK8sConfig(container_config={"image": "other"}))
    with pytest.raises(Exception, match="image"):
        context.validate_user_k8s_config_for_run(allowed, [])


def test_no_secret_is_in_git_and_only_ours_learn_the_settings() -> None:
    assert [manifest for manifest in MANIFESTS if manifest["kind"] == "Secret"] == []
    for manifest in MANIFESTS:
        assert set(manifest.get("data") or {}) & SECRET <= {"FC_DATABASE_URL", "FC_DAGSTER_DATABASE_URL"}
        for value in (manifest.get("data") or {}).values():
            assert not re.search(r"://[^/@]*:[^/@]*@", value), "a password"
    told = {name for name, pod in PODS.items() if "'secretRef'" in str(pod)}
    assert told == {"code"}


def test_the_measuring_pod_has_whole_cores_of_its_own() -> None:
    pod = PODS["builder"]
    assert pod["nodeSelector"] == {"formulacode/pool": "measure"}
    for container in (*pod["initContainers"], *pod["containers"]):
        resources = container["resources"]
        # what the static CPU manager asks for: the class Guaranteed, and whole CPUs
        assert resources["requests"] == resources["limits"]
        assert resources["limits"]["cpu"].isdigit()
    assert {
        name
        for name, each in PODS.items()
        if any((c.get("securityContext") or {}).get("privileged") for c in each["containers"])
    } == {"builder"}


def test_only_who_launches_runs_may_ask_the_api_server() -> None:
    assert {name for name, pod in PODS.items() if pod["automountServiceAccountToken"]} == {"daemon", "webserver"}
    services = [manifest for manifest in MANIFESTS if manifest["kind"] == "Service"]
    assert {service["spec"].get("type", "ClusterIP") for service in services} == {"ClusterIP"}


def test_the_webserver_gets_the_settings_of_the_ui_and_no_others() -> None:
    (webserver,) = PODS["webserver"]["containers"]
    given = {variable["name"]: variable["valueFrom"]["secretKeyRef"] for variable in webserver["env"]}
    ui = {setting.name for setting in SETTINGS if setting.name.startswith("FC_UI_")}
    assert set(given) == {"PGPASSWORD", *ui}
    for name in ui:
        assert given[name] == {"name": "formulacode-settings", "key": name, "optional": True}


def test_the_build_pool_builds_only_locks() -> None:
    pods = pods_of(BUILD_POOL)
    assert pods["lock-builder"]["nodeSelector"] == {"formulacode/pool": "build"}
    (toleration,) = pods["lock-builder"]["tolerations"]
    assert (toleration["key"], toleration["value"]) == ("formulacode/pool", "build")
    (worker,) = pods["lock-worker"]["containers"]
    assert worker["command"] == ["fc-data", "assist", "--stage", "environments"]
    (service,) = (manifest for manifest in BUILD_POOL if manifest["kind"] == "Service")
    address = f"tcp://lock-builder-0.{service['metadata']['name']}:{service['spec']['ports'][0]['port']}"
    assert worker["env"] == [{"name": "DOCKER_HOST", "value": address}]
    (engine,) = pods["lock-builder"]["containers"]
    (measuring,) = PODS["builder"]["containers"]
    assert engine["args"] == measuring["args"], "the same engine, of another pool"
    (policy,) = (manifest["spec"] for manifest in BUILD_POOL if manifest["kind"] == "NetworkPolicy")
    (as_strict,) = (
        manifest["spec"]
        for manifest in MANIFESTS
        if manifest["kind"] == "NetworkPolicy" and manifest["metadata"]["name"] == "builder"
    )
    assert {**policy, "podSelector": None} == {**as_strict, "podSelector": None}


KUSTOMIZE = ["kustomize", "build"] if shutil.which("kustomize") else ["kubectl", "kustomize"]


def rendered(folder: Path, *components: str) -> list[Any]:
    """Output of kustomize for the manifests with *components*."""
    shutil.copytree(FOLDER, folder, dirs_exist_ok=True)
    (folder / "kustomization.yaml").write_text(yaml.safe_dump({**KUSTOMIZATION, "components": list(components)}))
    done = subprocess.run([*KUSTOMIZE, str(folder)], capture_output=True, text=True, check=True)
    return list(yaml.safe_load_all(done.stdout))


needs_kustomize = pytest.mark.skipif(shutil.which(KUSTOMIZE[0]) is None, reason="neither kustomize nor kubectl is here")


@needs_kustomize
@pytest.mark.parametrize(("components", "images"), [((), 5), (("read-only", "build-pool"), 6)])
def test_kustomize_puts_one_image_everywhere_runs_included(
    tmp_path: Path, components: tuple[str, ...], images: int
) -> None:
    made = rendered(tmp_path, *components)
    (image,) = KUSTOMIZATION["images"]
    assert str(made).count(f"{image['newName']}:{image['newTag']}") == images
    assert "formulacode/platform:local" not in str(made)
    for manifest in made:
        validate(manifest, VERSIONS[-1])


@needs_kustomize
def test_a_ui_that_is_read_only_is_one_component_away(tmp_path: Path) -> None:
    shown, read_only = (
        pods_of(rendered(tmp_path, *components))["webserver"]["containers"][0]["command"]
        for components in ((), ("read-only",))
    )
    assert read_only == [*shown, "--read-only"]
