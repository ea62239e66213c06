from formulacode_dagster.building.declarations.asv_config import AsvConfig
from formulacode_dagster.building.declarations.commands import read_commands


def read(tree_of, build=(), install=(), files=None, **rest):
    config = AsvConfig(
        path="asv/asv.conf.json", benchmark_dir="b", build_command=build, install_command=install, **rest
    )
    return read_commands(tree_of(files or {"setup.py": ""}), config)


def test_asvs_own_commands_leave_nothing_to_do(tree_of):
    reading = read(
        tree_of,
        build=(
            "python setup.py build",
            "python -m build",
            "PIP_NO_BUILD_ISOLATION=false python -mpip wheel --no-deps --no-index -w {build_cache_dir} {build_dir}",
        ),
        install=("in-dir={env_dir} python -mpip install {wheel_file}",),
    )
    assert reading.steps == ()
    assert reading.extras == ()
    assert reading.requirements == ()
    assert reading.environment == {}


def test_extras_count_where_the_commands_name_them(tree_of):
    reading = read(
        tree_of, install=("in-dir={env_dir} python -m pip install {wheel_file}[test,plot]", "pip install .[io]")
    )
    assert reading.extras == ("test", "plot", "io")


def test_packages_and_requirement_files_are_declarations_and_tools_are_not(tree_of):
    reading = read(
        tree_of,
        build=(
            "python -m pip install -U build",
            "python -m pip install 'cython<3' -r {build_dir}/dev.txt -c limits.txt",
        ),
        files={"setup.py": "", "dev.txt": "pytest\n"},
    )
    assert [item.text for item in reading.requirements] == ["cython<3", "pytest"]


def test_other_commands_become_steps_in_their_folder(tree_of):
    reading = read(tree_of, build=("FLAG=1 in-dir={build_dir}/native make lib", "{env_dir}/bin/tool", "git clone x"))
    assert [(step.folder, step.argv) for step in reading.steps] == [("native", ("make", "lib"))]
    assert reading.environment == {"FLAG": "1"}
    assert len(reading.notes) == 2
    assert "network" in reading.notes[1]


def test_the_folder_that_is_installed_is_the_package_folder(tree_of):
    reading = read(tree_of, build=("pip wheel -w {build_cache_dir} {build_dir}/python",), files={"python/setup.py": ""})
    assert reading.package_folder == "python"


def test_a_command_that_is_none_is_noted(tree_of):
    assert "left out" in read(tree_of, build=("echo 'open",)).notes[0]


def test_a_folder_installed_beside_the_wheel_is_not_the_package(tree_of):
    tree = tree_of({"setup.py": "", "benchmarks/setup.py": ""})
    config = AsvConfig(
        path="asv.conf.json",
        benchmark_dir="benchmarks",
        install_command=("python -m pip install ./benchmarks", "in-dir={env_dir} python -mpip install {wheel_file}"),
    )
    assert read_commands(tree, config).package_folder == ""
    built = config.model_copy(update={"build_command": ("pip wheel -w {build_cache_dir} {build_dir}/benchmarks",)})
    assert read_commands(tree, built).package_folder == "benchmarks"


def test_the_folder_of_the_configuration_may_be_the_package_itself(tree_of):
    config = AsvConfig(
        path="asv.conf.json",
        benchmark_dir="b",
        install_command=("in-dir={env_dir} python -mpip install {conf_dir}[all]",),
    )
    reading = read_commands(tree_of({"setup.py": ""}), config)
    assert (reading.extras, reading.requirements) == (("all",), ())
