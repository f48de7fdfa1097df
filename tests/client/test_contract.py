"""The client's view of a report is the service's."""

from __future__ import annotations

import pytest
from fusionscope_client import contract
from fusionscope_client.decoding import decoded
from pydantic import BaseModel

from compiler import report
from tools import client_types

MODELS = [
    model
    for model in vars(report).values()
    if isinstance(model, type) and issubclass(model, BaseModel) and model is not report.ReportModel
]


def test_the_clients_contract_is_up_to_date() -> None:
    assert client_types.TARGET.read_text() == client_types.render(), "run python tools/client_types.py"


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_example_of_the_service_is_one_of_the_client(model: type[BaseModel]) -> None:
    of = getattr(contract, model.__name__)
    for example in model.model_json_schema().get("examples", [{}]):
        made = decoded(of, example)
        assert {name: getattr(made, name) for name in example} == example
