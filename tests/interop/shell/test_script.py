"""Scripts as they are read, beside bash itself as it runs them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.errors import InputError
from p2smt.interop.shell.script import read_script
from p2smt.interop.shell.variables import unknowns

RECORDER = """
torchrun() { [ $# = 0 ] || printf '%s\\0' "$@" >&3; printf '\\n\\0' >&3; }
export -f torchrun
"""
"""Writes its arguments to a file in place of running something."""


def bash(text: str, environment: dict[str, str], folder: Path) -> list[tuple[str, ...]]:
    """The arguments of each ``torchrun`` that bash runs."""
    found = folder / "calls"
    found.write_text("")
    with found.open("w") as out:
        subprocess.run(
            ["bash", "-c", f"exec 3>&{out.fileno()}\n{RECORDER}{text}"],
            env={"PATH": os.environ["PATH"], **environment},
            pass_fds=(out.fileno(),),
            capture_output=True,
            check=False,
        )
    calls: list[tuple[str, ...]] = []
    words: list[str] = []
    for word in found.read_text().split("\0")[:-1]:
        if word == "\n":
            calls.append(tuple(words))
            words = []
        else:
            words.append(word)
    return calls


def ours(text: str, known: dict[str, str]) -> list[tuple[str, ...]]:
    script = read_script(text, known, "run.sh")
    return [each.words[1:] for each in script.commands if each.words[0] == "torchrun"]


WRITTEN = {
    "arrays": 'A=(a "b c" d)\nA+=(e)\nA[1]=x\ntorchrun "${A[@]}" ${A[*]} "${A[*]}" ${#A[@]}',
    "comments": "A=(\n  --x 1 # why\n  # --y 2\n  --z 3\n)\ntorchrun ${A[@]} \\\n  --end",
    "defaults": "TP=${TP:-2}; : ${PP:=4}; torchrun $TP $PP ${TP:+yes} ${NO:+no} ${NO-3}",
    "arithmetic": "A=7; B=$((A * 3 - A / 2 ** 2 % 5)); torchrun $B $((A > 6 ? 1 : 2)) $((-A / 2))",
    "counting": "i=0; while (( i < 3 )); do torchrun w$i; ((i++)); done; let i+=4; torchrun $i",
    "tests": "X=5\nif [[ $X -gt 4 && -n $X ]]; then O='--a 1'; elif [ $X = 2 ]; then O=n; fi\n"
    'torchrun $O "$O"',
    "an unset variable is empty": 'if [ -z "$NO" ]; then NO=3; fi; torchrun $NO',
    "or else": "[ 1 -eq 2 ] && torchrun a || torchrun b; ! [ 1 = 2 ] && torchrun c",
    "case": "M=moe-8x7; case $M in moe*) T=1 ;; *) T=2 ;; esac; torchrun $T",
    "functions": 'f() { local a=$1; shift; torchrun $a "$@" $#; }\nf 1 2 "3 4"',
    "loops": 'for i in 1 "2 3"; do torchrun --i=$i "$i"; done',
    "inner shells": "W='a b'; eval \"torchrun '$W' c\"; ",
    "arguments of inner shells": "A=(a 'b c'); set -- o; "
    'bash -c \'torchrun "$@" $1 $#\' - "${A[@]}" d; bash -c \'torchrun x "$@"\'',
    "ends of texts": "P=a/b/c.tar.gz; torchrun ${P##*/} ${P%.*} ${P%%.*} ${P#*/} ${P^^}",
    "blanks in texts": 'A="\n  --x 1\n  --y  2 "; torchrun ${A}z "$A" pre$A',
    "numbers from echo": 'N=$(echo 3 4); torchrun $N "$N" `echo 5`',
    "a line that goes on behind the end": "torchrun a \\\n  b \\\n",
    "exit": "if [ 1 = 1 ]; then torchrun a; exit 0; fi; torchrun b",
}


@pytest.mark.parametrize("case", WRITTEN)
def test_words_are_those_that_bash_makes(case: str, tmp_path: Path) -> None:
    expected = bash(WRITTEN[case], {}, tmp_path)
    assert expected
    assert ours(WRITTEN[case], {}) == expected


NUMBERS = ("TP", "PP", "N")
WORDS = (
    "$TP",
    '"$TP"',
    "${PP:-4}",
    "--n=${N}",
    '"--a $ARGS"',
    "$ARGS",
    "${L[@]}",
    '"${L[@]}"',
    "x",
)
TESTS = (
    '[ -n "$TP" ]',
    '[[ "$PP" == 2 ]]',
    '[ "${N:-0}" -gt 1 ]',
    '[ -z "$ARGS" ]',
    "[[ $TP = [0-9] ]]",
)
one_word = st.sampled_from(WORDS)
words = st.lists(one_word, min_size=1, max_size=4).map(" ".join)
number, text = st.sampled_from(("2", "8", "", "0")), st.sampled_from(("", "a b", "--x 3", " y "))
simple = st.one_of(
    st.builds(
        "{}={}".format, st.sampled_from(NUMBERS), st.sampled_from(("3", "$TP", '"$PP"', "16"))
    ),
    st.builds("{}+={}".format, st.sampled_from(NUMBERS), st.sampled_from(("1", "$PP"))),
    st.builds("ARGS{}".format, st.sampled_from(("='a $N'", '=" $N b"', '+="$PP y"', "+=$ARGS"))),
    st.builds("L+=({})".format, words),
    st.builds("N=$((${{TP:-1}} * {} + 1))".format, st.sampled_from("123")),
    st.builds("torchrun {}".format, words),
)
statement = st.one_of(
    simple,
    st.builds("if {}; then\n{}\nelse\n{}\nfi".format, st.sampled_from(TESTS), simple, simple),
    st.builds("{} && {}".format, st.sampled_from(TESTS), simple),
    st.builds("for i in {}; do\n{}\ndone".format, words, simple),
    st.builds("case $PP in 2|4) {} ;; *) {} ;; esac".format, simple, simple),
)
scripts = st.lists(statement, min_size=1, max_size=6).map("\n".join)
environments = st.fixed_dictionaries(dict.fromkeys(NUMBERS, number) | {"ARGS": text})


@given(scripts, environments)
def test_a_script_whose_variables_are_all_told_is_read_as_bash_runs_it(
    tmp_path_factory: pytest.TempPathFactory, text: str, environment: dict[str, str]
) -> None:
    """What is assigned in the script counts for bash; settings would win over it here."""
    given_first = "".join(f"{name}='{value}'\n" for name, value in environment.items())
    text = f"{given_first}L=()\n{text}\ntorchrun end $TP ${{L[@]}} $ARGS"
    folder = tmp_path_factory.getbasetemp()
    assert ours(text, {}) == bash(text, {}, folder)


@given(scripts, environments)
def test_what_is_said_to_be_known_holds_in_every_environment(
    tmp_path_factory: pytest.TempPathFactory, text: str, environment: dict[str, str]
) -> None:
    """The last command's words without marks are bash's, whatever else is in the environment."""
    text = f"L=()\n{text}\ntorchrun end ${{TP}}. ${{PP}}. ${{N}}."
    script = read_script(text, {}, "run.sh")
    found = script.commands[-1].words[1:]
    rest = {name: value for name, value in environment.items() if name not in script.defaults}
    expected = bash(text, rest, tmp_path_factory.getbasetemp())[-1]
    if not unknowns(found):
        assert found == expected


def test_what_is_missing_is_asked_for_by_the_names_that_would_tell_it() -> None:
    text = "source conf.sh\nH=$(head -n 1 hosts)\nif [ -f x ]; then TP=2; else TP=4; fi\n"
    text += "torchrun --a $H --tp $TP --pp $PP"
    script = read_script(text, {}, "run.sh")
    assert unknowns(script.commands[-1].words) == ("H", "line 3", "PP")
    assert script.sourced == ("conf.sh",)
    told = {"H": "h1", "line 3": "yes", "PP": "3"}
    assert ours(text, told) == [("--a", "h1", "--tp", "2", "--pp", "3")]


def test_a_file_may_set_variables_of_before_but_no_array() -> None:
    text = "TP=2\nA=(--cp 4)\nsource conf.sh\nPP=3\ntorchrun $TP $PP ${A[@]}"
    script = read_script(text, {}, "run.sh")
    assert unknowns(script.commands[-1].words) == ("TP",)
    assert script.commands[-1].words[2:] == ("3", "--cp", "4")
    assert script.doubted == {"TP": "conf.sh"}
    assert ours(text, {"TP": "8"}) == [("8", "3", "--cp", "4")]


def test_settings_win_over_the_script_and_defaults_are_told() -> None:
    text = "TP=2\nPP=${PP:-4}\ntorchrun $TP $PP"
    assert ours(text, {"TP": "8"}) == [("8", "4")]
    assert read_script(text, {}, "run.sh").defaults == {"PP": "4"}


def test_inner_scripts_are_read_with_what_is_not_known_in_them() -> None:
    text = 'CMD="torchrun --pp $PP x"\nsrun -N 4 bash -c "$CMD"'
    script = read_script(text, {}, "run.sh")
    assert [each.words[:2] for each in script.commands] == [("srun", "-N"), ("torchrun", "--pp")]
    assert unknowns(script.commands[-1].words) == ("PP",)
    assert {each.line for each in script.commands} == {2}


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("if [ 1 = 1 ]; then\ntorchrun", "line 1: cannot be read as a script of bash"),
        ("while true; do :; done", "steps to evaluate"),
        ("f() { f; }\nf", "calls itself without end"),
        ("x" * 1_000_001, "has more than 1,000,000 bytes"),
        ("torchrun \ue000", "private use"),
        ("if true; then\n" * 2000 + "torchrun\n" + "fi\n" * 2000, "nested too deeply"),
    ],
)
def test_bad_scripts_are_one_clear_line(text: str, rule: str) -> None:
    with pytest.raises(InputError, match=rule):
        read_script(text, {}, "run.sh")
