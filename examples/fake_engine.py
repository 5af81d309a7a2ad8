#!/usr/bin/env python3
"""An engine that runs nothing: it asks for every `tool_call`, waits for the answer, and says what it would have done.

For trying out `countersign relay`. Everything else it hears, it repeats as an `echo` event.
"""
import json
import sys


def say(**frame):
    sys.stdout.write(json.dumps(frame) + "\n")
    sys.stdout.flush()


CATEGORIES = {"Read": "info", "AskUserQuestion": "info", "Write": "edit", "Edit": "edit", "Bash": "exec"}
pending = {}
capabilities = {"tool_approval": True, "modes": ["default"], "current_mode": "default", "mcp": False,
                "thinking": False, "effort": False, "effort_levels": [], "hitl_suspend": True}
say(type="ready", version="0", session_id=None, session_persistence="none", capabilities=capabilities)
for line in sys.stdin:
    frame = json.loads(line)
    kind, call_id = frame["type"], frame.get("call_id")
    if kind == "tool_call":
        tool = dict(frame["tool"], category=CATEGORIES.get(frame["tool"]["name"], "mcp"), description="a call")
        pending[call_id] = tool
        say(type="tool_request", msg_id="m1", call_id=call_id, tool=tool)
    elif kind == "suspend_me":
        pending[call_id] = {"name": "AskUserQuestion"}
        say(type="approval_required", call_id=call_id, resume_token=frame["token"], reason="Tool requires host decision",
            context="AskUserQuestion: Which deployment target?")
    elif kind in ("tool_approve", "approval_resume") and frame.get("approved", True):
        call_id = call_id or next(iter(pending))
        name = pending.pop(call_id)["name"]
        answer = frame.get("answer") or (frame.get("modifications") or {}).get("answer")
        say(type="tool_running", msg_id="m1", call_id=call_id, tool_name=name)
        say(type="tool_result", msg_id="m1", call_id=call_id, tool_name=name, status="success",
            output=answer or f"would run {name}, scope {frame.get('scope')}", output_type="text")
    elif kind in ("tool_deny", "approval_resume"):
        call_id = call_id or next(iter(pending))
        pending.pop(call_id, None)
        say(type="tool_cancelled", msg_id="m1", call_id=call_id, reason=frame.get("reason", "denied"))
    else:
        say(type="echo", critical=False, line=line)
