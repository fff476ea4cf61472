/** Independent expansions of recurrence rules, on a calendar without zones: two libraries. */
import { spawnSync } from 'node:child_process';
import { RRuleTemporal } from 'rrule-temporal';
import { Temporal } from 'temporal-polyfill';
import { readingText } from './generator.ts';

/** The first `take` wall times of a rule after one, as milliseconds of the same reading in UTC. */
export type Question = { readonly rule: string; readonly start: number; readonly after: number; readonly take: number };

/** `undefined`: the library gives no answer, or needs too long. */
export type Answer = readonly number[] | undefined;

/** Periods that rrule-temporal may look at. A rule without a match ends there. */
const MOST_PERIODS = 5_000;

export function rruleTemporal({ rule, start, after, take }: Question): Answer {
  const found: number[] = [];
  try {
    const expander = new RRuleTemporal({
      // With a zone, RFC 5545 wants UNTIL in UTC.
      rruleString: `DTSTART;TZID=UTC:${readingText(start)}\nRRULE:${rule.replace(/(UNTIL=[0-9T]+)/, '$1Z')}`,
      maxIterations: MOST_PERIODS,
      temporal: Temporal,
    });
    expander.all(({ epochMilliseconds: at }) => {
      if (at > after) found.push(at);
      return found.length < take;
    });
    return found;
  } catch {
    return undefined;
  }
}

/** Reads questions, a JSON array, from standard input. A question may take a twentieth of a second. */
const DATEUTIL = `
import datetime, json, signal, sys
from dateutil import rrule
epoch = datetime.datetime(1970, 1, 1)
def late(*_): raise TimeoutError()
signal.signal(signal.SIGALRM, late)
answers = []
for q in json.load(sys.stdin):
    start, after = (epoch + datetime.timedelta(milliseconds=q[name]) for name in ('start', 'after'))
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        rule = rrule.rrulestr('DTSTART:%s\\nRRULE:%s' % (start.strftime('%Y%m%dT%H%M%S'), q['rule']))
        answers.append([round((at - epoch).total_seconds()) * 1000 for at in rule.xafter(after, count=q['take'])])
    except Exception:
        answers.append(None)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
json.dump(answers, sys.stdout)
`;

/** Answers of python-dateutil, in the order of the questions; `undefined` without Python or the package. */
export function dateutil(questions: readonly Question[]): readonly Answer[] | undefined {
  const { status, stdout } = spawnSync('python3', ['-c', DATEUTIL], {
    input: JSON.stringify(questions),
    maxBuffer: 2 ** 28,
    encoding: 'utf8',
  });
  if (status !== 0) return undefined;
  return (JSON.parse(stdout) as (number[] | null)[]).map((answer) => answer ?? undefined);
}
