"""Sets, changes, previews and backfills alarms from Python: reads one JSON line per call and answers with one. Run by surfaces.ts."""
import json
import os
import sys

from reveille import Chronosd, ReveilleError
from reveille.identity import Identity

given = json.loads(os.environ["GIVEN"])
identity = Identity.from_file(given["label"], given["key_file"])
chronosd = Chronosd(given["chronos_url"], given["chronos_token"], identity)
for line in sys.stdin:
    call = json.loads(line)
    try:
        if call.get("do") == "preview":
            answer = chronosd.preview_alarm(**call["fields"])
        elif call.get("do") == "backfill":
            answer = chronosd.backfill_alarm(call["id"], **call["fields"])
        elif "id" in call:
            answer = chronosd.patch_alarm(call["id"], **call["fields"])
        else:
            answer = chronosd.create_alarm(**call["fields"])
    except ReveilleError as error:
        answer = {"error": str(error)}
    print(json.dumps(answer, default=str), flush=True)
