"""The client of the Python SDK: asks, streams, reads, cancels; prints what it saw as one line of JSON."""
import asyncio
import json
import os
import uuid

import httpx
from a2a.client import ClientConfig, ClientFactory, A2ACardResolver
from a2a.types import a2a_pb2 as pb

GIVEN = json.loads(os.environ["GIVEN"])


def request(text, immediately=False):
    message = pb.Message(message_id=str(uuid.uuid4()), role=pb.ROLE_USER, parts=[pb.Part(text=text)])
    return pb.SendMessageRequest(
        message=message, configuration=pb.SendMessageConfiguration(return_immediately=immediately)
    )


def client_of(http, card, streaming):
    config = ClientConfig(
        streaming=streaming, httpx_client=http, supported_protocol_bindings=[GIVEN["binding"]], use_client_preference=True
    )
    return ClientFactory(config).create(card)


async def last_task(client, message):
    """The task at the end of the answer, with its state and its text from the events of a stream."""
    task_id, state, text = None, None, ""
    async for event in client.send_message(message):
        if event.HasField("task"):
            task_id, state = event.task.id, event.task.status.state
            text = "".join(part.text for artifact in event.task.artifacts for part in artifact.parts)
        elif event.HasField("status_update"):
            state = event.status_update.status.state
        elif event.HasField("artifact_update"):
            parts = "".join(part.text for part in event.artifact_update.artifact.parts)
            text = text + parts if event.artifact_update.append else parts
    return task_id, pb.TaskState.Name(state), text


async def main():
    headers = {"Authorization": f"Bearer {GIVEN['token']}"}
    async with httpx.AsyncClient(headers=headers, timeout=30) as http:
        card = await A2ACardResolver(http, GIVEN["url"]).get_agent_card()
        client = client_of(http, card, streaming=True)
        task_id, state, text = await last_task(client, request("hello"))
        read = await client.get_task(pb.GetTaskRequest(id=task_id))
        polling = client_of(http, card, streaming=False)
        running, _, _ = await last_task(polling, request("wait", immediately=True))
        canceled = await client.cancel_task(pb.CancelTaskRequest(id=running))
        extended = await client.get_extended_agent_card(pb.GetExtendedAgentCardRequest())
        try:
            await client.get_task(pb.GetTaskRequest(id=str(uuid.uuid4())))
            missing = None
        except Exception as error:
            missing = type(error).__name__
        print(
            json.dumps(
                {
                    "card": card.name,
                    "sent": [state, text],
                    "read": pb.TaskState.Name(read.status.state),
                    "canceled": pb.TaskState.Name(canceled.status.state),
                    "extended": extended.name,
                    "missing": missing,
                }
            )
        )


asyncio.run(main())
