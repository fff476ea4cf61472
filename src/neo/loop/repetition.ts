/** Noticing that a model makes the same failing call again and again. */
import type { ModelToolCall } from '../../kit/model/model.ts';
import { parseForeignJson } from '../../wire/json.ts';

/** How often the same call may fail in a turn. */
const FAILURES_OF_A_CALL = 4;

/** Two calls are the same when name and arguments are, however these are spaced. */
function keyOf({ name, input }: ModelToolCall): string {
  try {
    return `${name} ${JSON.stringify(parseForeignJson(input))}`;
  } catch {
    return `${name} ${input}`;
  }
}

/** Starts to count the failures of a turn's calls. */
export function repetition() {
  const failures = new Map<string, number>();
  return {
    /** Notes how a call ended. @returns whether it has failed too often */
    note(call: ModelToolCall, failed: boolean): boolean {
      const key = keyOf(call);
      if (!failed) {
        failures.delete(key);
        return false;
      }
      const count = (failures.get(key) ?? 0) + 1;
      failures.set(key, count);
      return count >= FAILURES_OF_A_CALL;
    },
  };
}

/** Why a turn stops that repeats itself. */
export function repeatedSentence(name: string): string {
  return `the same call of ${name} failed ${FAILURES_OF_A_CALL} times`;
}
