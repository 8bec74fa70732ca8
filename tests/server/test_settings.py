from __future__ import annotations

import pytest

from cutesmith_server.settings import SettingError, Settings, read_settings


def test_nothing_given_is_the_defaults():
    assert read_settings(None) == read_settings({}) == Settings(None, "auto", (), None)


def test_all_given():
    given = {"interpreter": "/usr/bin/python3", "device": "none", "archs": ["sm_80"], "trusted": True, "other": 1}
    assert read_settings(given) == Settings("/usr/bin/python3", "none", ("sm_80",), True)


def test_the_empty_interpreter_is_the_servers_own():
    assert read_settings({"interpreter": "", "device": ""}) == Settings()


@pytest.mark.parametrize(
    "values",
    [7, ["a"], {"device": "tpu"}, {"interpreter": 3}, {"archs": "sm_80"}, {"archs": [80]}, {"trusted": "yes"}],
)
def test_bad_values_are_named_in_a_sentence(values):
    with pytest.raises(SettingError, match=r"cutesmith|CuteSmith.*\.$"):
        read_settings(values)


@pytest.mark.parametrize("arch", ["sm_banana", "", "sm_20"])
def test_an_unknown_arch_is_named_with_those_that_are_known(arch):
    with pytest.raises(SettingError, match=f"sm_80, .*sm_90a, .*sm_120a.*not '{arch}'"):
        read_settings({"archs": ["sm_90a", arch]})


def test_a_change_of_configuration_never_grants_trust():
    assert read_settings({"trusted": False}).changed({"trusted": True, "device": "none"}) == Settings(
        device="none", trusted=False
    )
    assert read_settings({}).changed({"trusted": True}).trusted is None
