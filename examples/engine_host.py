#!/usr/bin/env python3
"""A host: drives an agent loop through `countersign engine`, or an engine of its own through `countersign relay`.

    engine_host.py WORKSPACE countersign engine --workspace WORKSPACE --data DATA
    engine_host.py WORKSPACE countersign relay --data DATA -- python3 fake_engine.py

Answers what it is asked by a small rule, and prints what became of each call.
"""
import json
import subprocess
import sys

# What a model would ask for, one call after the other.
SCRIPT = [
    ("Write", {"file_path": "hello.txt", "content": "hello\n"}),
    ("Edit", {"file_path": "hello.txt", "old_string": "hello", "new_string": "hello, world"}),
    ("Read", {"file_path": "hello.txt"}),
    ("Bash", {"command": "wc -c hello.txt"}),
    ("Bash", {"command": "rm -rf /"}),
    ("AskUserQuestion", {"question": "Which deployment target?", "options": ["staging", "production"]}),
]


class Host:
    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.ready = self.event("ready")

    def send(self, **frame):
        self.process.stdin.write(json.dumps(frame) + "\n")
        self.process.stdin.flush()

    def event(self, *wanted):
        """The next event of one of these types; what is asked on the way is answered."""
        for line in self.process.stdout:
            event = json.loads(line)
            if event["type"] == "tool_request":
                self.answer(event)
            if event["type"] in wanted:
                return event
        raise SystemExit("the engine ended")

    def answer(self, event):
        tool, call_id = event["tool"], event["call_id"]
        if tool["name"] == "AskUserQuestion":
            self.send(type="tool_approve", call_id=call_id, answer="staging")
        elif "rm -rf" in tool["args"].get("command", ""):
            self.send(type="tool_deny", call_id=call_id, reason="not on my machine")
        else:
            self.send(type="tool_approve", call_id=call_id, scope="once")

    def call(self, number, name, args):
        self.send(type="tool_call", msg_id="m1", call_id=f"c{number}", tool={"name": name, "args": args})
        return self.event("tool_result", "tool_cancelled")


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    host = Host(sys.argv[2:])
    for number, (name, args) in enumerate(SCRIPT):
        end = host.call(number, name, args)
        print(f"{name}: {end['type']}: {end.get('output', end.get('reason', '')).strip()}")
    host.process.stdin.close()
    sys.exit(host.process.wait())


if __name__ == "__main__":
    main()
