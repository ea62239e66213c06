from formulacode_dagster.measurement.machine import machine


def test_the_machine_is_named_by_its_processor_and_cores(tmp_path):
    info = tmp_path / "cpuinfo"
    info.write_text("processor\t: 0\nmodel name\t: Fast CPU 3000\nflags\t: x\n")
    assert machine(info).startswith("Fast CPU 3000, ")
    assert "cores" in machine(tmp_path / "missing")
