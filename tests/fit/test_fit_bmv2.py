"""`subak fit` on the JSON of bmv2, valid and invalid: what it reads and refuses."""

import json

import pytest
from fit_cases import demand, dependencies, fit

NUMBER_1 = {"type": "hexstr", "value": "0x1"}
SET_A = {"op": "assign", "parameters": [{"type": "field", "value": ["m", "a"]}, NUMBER_1]}
SET_B = {"op": "assign", "parameters": [{"type": "field", "value": ["m", "b"]}, NUMBER_1]}


def action(number, *primitives, name="", data=0):
    """An action in bmv2's JSON."""
    held = [{"name": f"d{k}", "bitwidth": 16} for k in range(data)]
    return {"name": name or f"x{number}", "id": number, "runtime_data": held, "primitives": list(primitives)}


def bmv2(*actions, **top):
    """A document in which t1 runs the first action, and t2, which matches m.a, runs the last one."""
    tables = [
        {
            "name": f"t{k + 1}",
            "key": [{"match_type": "exact", "target": ["m", field], "mask": None}],
            "max_size": 16,
            "action_ids": [one["id"]],
            "actions": [one["name"]],
            "next_tables": {one["name"]: after},
        }
        for k, (field, one, after) in enumerate((("c", actions[0], "t2"), ("a", actions[-1], None)))
    ]
    return {
        "header_types": [{"name": "m_t", "id": 0, "fields": [[name, 16, False] for name in "abc"]}],
        "headers": [{"name": "m", "id": 0, "header_type": "m_t", "metadata": True}],
        "actions": list(actions),
        "pipelines": [{"name": "ingress", "id": 0, "init_table": "t1", "tables": tables, "conditionals": []}],
        **top,
    }


def with_data(kind, number):
    """An action with one item of data, used as an operand of this kind and number."""
    given = [SET_A["parameters"][0], {"type": kind, "value": number}]
    return action(0, {"op": "assign", "parameters": given}, data=1)


def jumping(op, to, *before):
    """An action that jumps to the primitive with this number."""
    return action(0, {"op": op, "parameters": [*before, {"type": "hexstr", "value": hex(to)}]}, SET_B)


def bound_to(table, array="meter_arrays"):
    """A direct meter that only its own ``binding`` connects to a table."""
    return {array: [{"name": "d", "id": 0, "is_direct": True, "binding": table, "result_target": ["m", "a"]}]}


def test_meter_bound_by_its_own_word(tmp_path):
    """A table writes the result of a direct meter that only the meter's ``binding`` connects to it."""
    document = json.dumps(bmv2(action(0, SET_B), action(1, SET_B), **bound_to("t1")))
    demand(dependencies(tmp_path, document, name="case.json"), ("t1", "t2", "match"))


def test_action_of_an_entry(tmp_path):
    """An action that only a constant entry runs counts as a writer too."""
    document = bmv2(action(0, SET_B), action(2, SET_A), action(1, SET_B))
    entry = {"match_key": [], "action_entry": {"action_id": 2, "action_data": []}}
    document["pipelines"][0]["tables"][0]["entries"] = [entry]
    demand(dependencies(tmp_path, json.dumps(document), name="case.json"), ("t1", "t2", "match"))


@pytest.mark.parametrize(
    "first",
    [
        with_data("runtime_data", 0),
        jumping("_jump", 1),
        jumping("_jump", 2),
        jumping("_jump_if_zero", 2, {"type": "field", "value": ["m", "c"]}),
    ],
    ids=["data", "jump-to-the-next", "jump-to-the-end", "jump-if-zero"],
)
def test_good_bmv2(tmp_path, first):
    """Existing action data and forward jumps are accepted."""
    code, _, said = fit(tmp_path, json.dumps(bmv2(first, action(1, SET_B))), name="case.json")
    assert code == 0, said


@pytest.mark.parametrize(
    ("document", "place"),
    [
        (bmv2(action(0, SET_A), action(1, SET_B), **bound_to("t9")), "meter_arrays[0].binding"),
        (bmv2(action(0, SET_A), action(0, SET_B, name="z")), "actions[1].id"),
        (bmv2(with_data("runtime_data", 1), action(1, SET_B)), "actions[0].primitives[0].parameters[1].value"),
        (bmv2(with_data("runtime_data", -1), action(1, SET_B)), "actions[0].primitives[0].parameters[1].value"),
        (bmv2(with_data("local", 0), action(1, SET_B)), "actions[0].primitives[0].parameters[1].type"),
        (bmv2(jumping("_jump", 0), action(1, SET_B)), "actions[0].primitives[0].parameters[0].value"),
        (bmv2(jumping("_jump", 3), action(1, SET_B)), "actions[0].primitives[0].parameters[0].value"),
        (bmv2(action(0, {**SET_A, "parameters": [NUMBER_1, NUMBER_1]}), action(1, SET_B)), "parameters[0]"),
    ],
    ids=["binding", "one-id", "data", "negative-data", "local", "jump-back", "jump-out", "writes-a-number"],
)
def test_refused_bmv2(tmp_path, document, place):
    """An inconsistent document is refused with the place of the error."""
    code, answer, _ = fit(tmp_path, json.dumps(document), name="case.json")
    assert code == 2
    assert place in answer["error"]["place"]


def test_names_beside_ids_of_actions(tmp_path):
    """A table whose action names differ from those of its action ids is refused."""
    document = bmv2(action(0, SET_A), action(1, SET_B))
    document["pipelines"][0]["tables"][0]["action_ids"] = [1]
    code, answer, _ = fit(tmp_path, json.dumps(document), name="case.json")
    assert code == 2
    assert answer["error"]["place"] == "pipelines[0].tables[0].actions[0]"


def test_old_bmv2_with_two_actions_of_a_name(tmp_path):
    """Older JSON refers to actions by name: a name of two actions is ambiguous and refused."""
    document = bmv2(action(0, SET_A, name="x"), action(1, SET_B, name="x"))
    for one in document["pipelines"][0]["tables"]:
        del one["action_ids"]
    code, _, said = fit(tmp_path, json.dumps(document), name="case.json")
    assert code == 2
    assert "there are 2 actions" in said
