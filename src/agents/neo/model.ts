/** The offline model, used when none is configured: it says so, and answers from its input. Deterministic. */
import type { Clock } from '../../kit/clock/clock.ts';
import { formatLateness } from '../../kit/clock/duration.ts';
import { endpointModel, type ModelConfig } from '../../kit/model/endpoint.ts';
import type { Model, ModelRequest } from '../../kit/model/model.ts';
import { jsonForTerminal } from '../../kit/text/hidden-characters.ts';
import type { TurnInput } from '../../turns/turn.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import { isByPerson, readSetBy, setByText } from '../../wire/set-by.ts';

// The request to a model: besides the text it has the facts of the turn, for the offline model.

type NeoRequest = ModelRequest & {
  /** The facts of the turn as data. */
  readonly turn: TurnInput;
};

/** Any model; the offline one also uses the turn. */
export type NeoModel = Model<NeoRequest>;

/** The model of a configuration. The packages behind a real one are loaded with its first request. */
export function chooseModel(config: ModelConfig, clock: Clock): NeoModel {
  return config.kind === 'offline' ? offlineModel : endpointModel(config, 'NEO', clock);
}

const OFFLINE = 'offline';

/** Longer quotes are cut; the conversation has the whole message. */
const QUOTED_CHARACTERS = 600;

function shortened(text: string): string {
  if (text.length <= QUOTED_CHARACTERS) return text;
  const cut = text.slice(0, QUOTED_CHARACTERS);
  return `${cut.isWellFormed() ? cut : cut.slice(0, -1)}…`;
}

function quote(text: string): string {
  const quoted = jsonForTerminal(JSON.stringify(shortened(text)));
  return text.length > QUOTED_CHARACTERS ? `${quoted} (${text.length} characters in all)` : quoted;
}

/** JSON on one line: its line ends are only between its tokens. */
function oneLine(json: string): string {
  return jsonForTerminal(shortened(json.replace(/[\r\n\t]+/g, ' ')));
}

function authorOf(setBy: string): string {
  const kind = isByPerson(setBy) ? 'a person' : 'a program';
  return `${quote(setByText(readSetBy(setBy)))}, ${kind}`;
}

function wakeSentence({
  label,
  scheduledFor,
  missedCount = 0,
  setAt,
  setBy,
  createdAt,
  lateBecause,
}: TurnInput): string {
  const alarm = label ? `the alarm ${quote(label)}` : 'an alarm';
  const due = scheduledFor === undefined ? '' : ` that was due at ${formatInstant(scheduledFor)}`;
  const late = scheduledFor === undefined ? '' : `, ${formatLateness(createdAt - scheduledFor, lateBecause)}`;
  const set =
    setAt === undefined
      ? ''
      : `; it was set at ${formatInstant(setAt)}${setBy === undefined ? '' : ` by ${authorOf(setBy)}`}`;
  const missed =
    missedCount === 0
      ? ''
      : `; ${missedCount} earlier ${missedCount === 1 ? 'occurrence was' : 'occurrences were'} missed`;
  return `A timer woke me, not a person: ${alarm}${due} reached me at ${formatInstant(createdAt)}${late}${set}${missed}.`;
}

/** The answer of the offline model: three lines at most. */
export function offlineReply(turn: TurnInput): string {
  const woken = turn.origin === 'chronos';
  const payload = turn.payload === undefined ? '' : ` Payload: ${oneLine(turn.payload)}`;
  return [
    'I am the offline model: no language model is configured (NEO_MODEL_BASE_URL), so I can only repeat what reached me.',
    woken ? wakeSentence(turn) : `A person wrote to me at ${formatInstant(turn.createdAt)}.`,
    `${woken && turn.setBy === undefined ? 'My message to myself' : 'The message'}: ${quote(turn.message)}${payload}`,
  ].join('\n');
}

export const offlineModel: NeoModel = {
  name: OFFLINE,
  generate({ turn, onText, signal }) {
    if (signal.aborted) return Promise.reject(signal.reason);
    const text = offlineReply(turn);
    onText(text);
    return Promise.resolve({ text, model: OFFLINE, usage: { inputTokens: 0, outputTokens: 0 } });
  },
};
