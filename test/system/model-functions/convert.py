"""Converts tools with the libraries of Python agents: what each of them sends to its provider, one JSON line for each.

Standard input has the tools, as MCP lists them. Nothing is sent.
"""

import json
import logging
import os
import sys
from importlib.metadata import version

# litellm would fetch its list of prices.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
logging.disable(logging.CRITICAL)
# Libraries print advertisements.
output, sys.stdout = sys.stdout, sys.stderr


def report(library, provider, mode, tool, convert):
    line = {"library": library, "version": version(library), "provider": provider, "mode": mode, "tool": tool["name"]}
    try:
        line["sent"] = convert()
    except Exception as error:
        line["refused"] = f"{type(error).__name__}: {error}"
    print(json.dumps(line), file=output, flush=True)


def structured(tool):
    """As langchain-mcp-adapters makes it."""
    from langchain_core.tools import StructuredTool

    return StructuredTool(
        name=tool["name"], description=tool["description"], args_schema=tool["inputSchema"], func=lambda **_: ""
    )


def langchain_google_genai(tool):
    from langchain_core.messages import HumanMessage
    from langchain_google_genai import ChatGoogleGenerativeAI

    model = ChatGoogleGenerativeAI(model="gemini-2.5-flash", google_api_key="none")
    tools = model.bind_tools([structured(tool)]).kwargs["tools"]
    request = model._prepare_request([HumanMessage("hello")], tools=tools)
    config = request["config"].model_dump(mode="json", exclude_none=True, by_alias=True)
    return config["tools"][0]["functionDeclarations"][0]


def langchain_openai(tool, strict):
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(model="gpt-4.1", api_key="none")
    return model.bind_tools([structured(tool)], strict=strict).kwargs["tools"][0]["function"]


def google_adk(tool):
    from google.adk.tools.mcp_tool.mcp_tool import McpTool
    from mcp.types import Tool

    declaration = McpTool(mcp_tool=Tool.model_validate(tool), mcp_session_manager=None)._get_declaration()
    return declaration.model_dump(mode="json", exclude_none=True, by_alias=True)


def litellm(tool, model, place):
    from litellm.types.utils import CallTypes
    from litellm.utils import return_raw_request

    function = {"name": tool["name"], "description": tool["description"], "parameters": tool["inputSchema"]}
    call = {
        "model": model,
        "messages": [{"role": "user", "content": "hello"}],
        "tools": [{"type": "function", "function": function}],
    }
    request = return_raw_request(CallTypes.completion, call)
    if request.get("error"):
        raise ValueError(request["error"])
    sent = request["raw_request_body"]
    for key in place:
        sent = sent[key]
    return sent


def openai_agents(tool, strict):
    from agents.mcp import MCPServerStdio, MCPUtil
    from mcp.types import Tool

    server = MCPServerStdio({"command": "none"})
    made = MCPUtil.to_function_tool(Tool.model_validate(tool), server, strict)
    if strict and not made.strict_json_schema:
        from agents.strict_schema import ensure_strict_json_schema

        # It sends the tool without strict then; this raises the reason.
        ensure_strict_json_schema(json.loads(json.dumps(tool["inputSchema"])), _reject_open_objects=True)
        raise ValueError("it is not strict")
    return {
        "name": made.name,
        "description": made.description,
        "parameters": made.params_json_schema,
        "strict": made.strict_json_schema,
    }


def main():
    for tool in json.load(sys.stdin):
        report("langchain-google-genai", "google", "normal", tool, lambda: langchain_google_genai(tool))
        report("google-adk", "google", "normal", tool, lambda: google_adk(tool))
        gemini = ("tools", 0, "function_declarations", 0)
        report("litellm", "google", "normal", tool, lambda: litellm(tool, "gemini/gemini-2.5-flash", gemini))
        report("litellm", "anthropic", "normal", tool, lambda: litellm(tool, "anthropic/claude-sonnet-4-5", ("tools", 0)))
        for mode, strict in (("normal", False), ("strict", True)):
            report("openai-agents", "openai", mode, tool, lambda: openai_agents(tool, strict))
            report("langchain-openai", "openai", mode, tool, lambda: langchain_openai(tool, strict))


main()
