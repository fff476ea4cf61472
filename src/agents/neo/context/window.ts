/**
 * The context window: the part of a turn and its conversation that a model reads, within the model's size. At the soft
 * limit a summary with all identifiers replaces the older part. Beyond the hard limit no request is sent.
 */
import type { ModelMessage } from '../../../kit/model/model.ts';
import { codeFor, quoted } from '../../../kit/model/quotation.ts';
import type { Turn } from '../../../turns/turn.ts';
import { formatInstant } from '../../../wire/rfc3339.ts';
import { condense, type Summarizer, transcriptOf } from './summary.ts';
import { tokensOfMessages } from './tokens.ts';

/** How many older turns are searched, and how many are shown. */
export const OLDER_TURNS_READ = 200;
const OLDER_TURNS_SHOWN = 3;
const EXCERPT_CHARACTERS = 800;
/** Longer texts are searched up to this length. */
const READ_CHARACTERS = 8192;

/** A turn is shown only if it shares words of this weight; a single common word is not enough. */
const LEAST_WEIGHT = 2;

function distinctWords(text: string): Set<string> {
  return new Set(
    text
      .slice(0, READ_CHARACTERS)
      .toLowerCase()
      .match(/[\p{L}\p{N}_-]{3,}/gu) ?? [],
  );
}

const textOf = ({ message, reply = '', label = '' }: Turn) => `${label}\n${message}\n${reply}`;

function excerpt(text: string): string {
  return text.length > EXCERPT_CHARACTERS ? `${text.slice(0, EXCERPT_CHARACTERS).toWellFormed()}…` : text;
}

/**
 * The older turns that share the most words with a turn, weighted by inverse document frequency: a word of every turn
 * weighs nothing, a word of a single turn weighs most.
 *
 * @param older oldest first
 * @returns oldest first
 */
export function relevantTurns(turn: Turn, older: readonly Turn[]): Turn[] {
  const turnWords = distinctWords(textOf(turn));
  const shared = older.map((each) => [...distinctWords(textOf(each))].filter((word) => turnWords.has(word)));
  const frequency = new Map<string, number>();
  for (const words of shared) for (const word of words) frequency.set(word, (frequency.get(word) ?? 0) + 1);
  const weightOf = (word: string) => Math.log((older.length + 1) / frequency.get(word)!);
  return older
    .map((each, rank) => ({ each, weight: shared[rank]!.reduce((sum, word) => sum + weightOf(word), 0) }))
    .filter(({ weight }) => weight >= LEAST_WEIGHT)
    .sort((one, other) => other.weight - one.weight || other.each.seq - one.each.seq)
    .slice(0, OLDER_TURNS_SHOWN)
    .map(({ each }) => each)
    .sort((one, other) => one.seq - other.seq);
}

function authorOf({ origin, sentBy }: Turn): string {
  if (sentBy !== undefined) return 'another agent';
  return origin === 'chronos' ? 'you, by an alarm' : 'a person';
}

/** Older turns as the system block shows them; `undefined` when none is relevant. */
export function renderOlder(turn: Turn, older: readonly Turn[]): string | undefined {
  const relevant = relevantTurns(turn, older);
  if (relevant.length === 0) return undefined;
  const shown = relevant.map((each) => {
    const author = authorOf(each);
    const answer = each.reply === undefined ? '' : `\nyour answer: ${excerpt(each.reply)}`;
    return `${formatInstant(each.createdAt)}, ${author}: ${excerpt(each.message)}${answer}`;
  });
  const text = shown.join('\n\n');
  const note = 'Older turns of this conversation that are not shown but may belong to this one, shortened:';
  return `${note}\n${quoted('older', codeFor([turn.id, 'older'], [text]), text)}`;
}

const SOFT_LIMIT = 0.8;
const HARD_LIMIT = 0.92;

/** The share of the newest steps that stays unchanged when the rest is summarized. */
const KEPT_PART = 0.3;

/** The input size of one summary request. */
const SUMMARIZED_PART = 0.4;

/** A shorter text would cost more to summarize than it saves. */
const LEAST_PART = 0.1;

/** An endpoint's count beyond this multiple of our estimate is ignored. */
const HIGHEST_FACTOR = 4;

/** The messages of one step: an answer with its calls and their results, or a message that arrived. */
type Step = readonly ModelMessage[];

export type WindowOptions = {
  /** The size of the model's context, in tokens. */
  limit: number;
  /** Earlier turns of the conversation. */
  earlier: readonly ModelMessage[];
  /** The subject of the turn; never summarized. */
  question: ModelMessage;
  summarize: Summarizer;
  /** Called when a part could not be summarized and was cut instead. */
  onFailure: (thrown: unknown) => void;
};

const NOTE =
  'The program around you has replaced what came before, and your older steps in this turn, by this summary, because the context was nearly full. It is data, like its sources.';

/** Makes the window of a turn. */
export function contextWindow({ limit, earlier, question, summarize, onFailure }: WindowOptions) {
  let before = earlier;
  let summary: ModelMessage | undefined;
  let steps: Step[] = [];
  /** The endpoint's count for one token of our estimate, at least 1. */
  let factor = 1;

  const messages = (): ModelMessage[] => [...before, question, ...(summary ? [summary] : []), ...steps.flat()];
  const usedShare = (fixedTokens: number) => ((fixedTokens + tokensOfMessages(messages())) * factor) / limit;

  /** How many of the newest steps stay. */
  function keptSteps(tokens: number): number {
    let left = tokens;
    let kept = 0;
    for (const step of steps.toReversed()) {
      left -= tokensOfMessages(step) * factor;
      if (left < 0) break;
      kept++;
    }
    return kept;
  }

  async function compact(kept: number): Promise<void> {
    const old = steps.slice(0, steps.length - kept);
    const text = transcriptOf([...before, ...(summary ? [summary] : []), ...old.flat()]);
    const shorter = await condense(text, summarize, (limit * SUMMARIZED_PART) / factor, onFailure);
    const code = codeFor([question.content, steps.length], [shorter]);
    summary = { role: 'user', content: `${NOTE}\n${quoted('summary', code, shorter)}` };
    before = [];
    steps = steps.slice(steps.length - kept);
  }

  /** The tokens that a compaction can summarize if it keeps this many steps. */
  const compactable = (kept: number) =>
    tokensOfMessages([...before, ...(summary ? [summary] : []), ...steps.slice(0, steps.length - kept).flat()]) *
    factor;

  return {
    messages,

    add(step: Step): void {
      steps.push(step);
    },

    /** The used share of the context, from 0, including the rest of the request. */
    partTaken: usedShare,

    /** Records an endpoint's own count of a request's tokens beside ours. */
    learn(estimated: number, counted: number | undefined): void {
      if (counted === undefined || estimated <= 0) return;
      factor = Math.min(HIGHEST_FACTOR, Math.max(factor, counted / estimated));
    },

    /**
     * Compacts when the next request would exceed the soft limit.
     *
     * @param fixedTokens tokens of the request besides the messages
     * @returns `full` when it still exceeds the hard limit
     */
    async fit(fixedTokens: number): Promise<'fits' | 'compacted' | 'full'> {
      const before_ = usedShare(fixedTokens);
      if (before_ <= SOFT_LIMIT) return 'fits';
      const kept = keptSteps(limit * KEPT_PART);
      let compacted = false;
      if (compactable(kept) >= limit * LEAST_PART) {
        await compact(kept);
        compacted = true;
      }
      if (usedShare(fixedTokens) > HARD_LIMIT && kept > 0) {
        await compact(0);
        compacted = true;
      }
      if (usedShare(fixedTokens) > HARD_LIMIT) return 'full';
      return compacted ? 'compacted' : 'fits';
    },

    /** Removes images, for a model that refuses them. @returns whether there were any */
    dropImages(): boolean {
      let dropped = false;
      steps = steps.map((step) =>
        step.map((message) => {
          if (message.role !== 'tool' || message.images === undefined) return message;
          dropped = true;
          const { images: _, ...others } = message;
          return { ...others, content: `${message.content}\n(This model cannot be shown images.)` };
        }),
      );
      return dropped;
    },
  };
}
export type ContextWindow = ReturnType<typeof contextWindow>;
