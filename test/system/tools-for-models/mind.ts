/**
 * A model that follows rules. Of the tools it knows what a request contains: their names and descriptions, the pages of
 * help, the answers and the errors. It imports nothing of them, so that it completes a task only if these texts suffice.
 */
import {
  calling,
  type EndpointBody,
  type EndpointMessage,
  type Script,
  saying,
} from '../../../src/kit/model/testing/model-endpoint.ts';

export type Args = Record<string, unknown>;
type Property = { description: string; enum?: string[]; type?: string };
type Tool = { name: string; description: string; properties: Record<string, Property>; required?: string[] };
/** A call of this turn, and its answer. */
export type Step = { tool: string; args: Args; result: Args; text: string };
type Call = { tool: string; args: Args };
type Row = { id: string; label?: string };

/** Something that a person may ask for, and how its field is recognized. */
type Wish = {
  /** In the person's words. */
  readonly heard: RegExp;
  /** In the description of the field, in a schema or on a page of help. */
  readonly described: RegExp;
  /** In the description of `help`, for a field that is not in the schema. */
  readonly topic?: RegExp;
  /** @param example of the page; @param id of the alarm that the person names */
  // biome-ignore lint/suspicious/noExplicitAny: examples have many shapes
  readonly value?: (heard: RegExpExecArray, example: any, id?: string) => unknown;
};

const SECONDS_OF_WORDS: Readonly<Record<string, number>> = { 'ten minutes': 600 };

const WISHES: readonly Wish[] = [
  { heard: /: "([^"]+)"/, described: /instructions to your future self/i },
  {
    heard:
      /^(?:(?:Wake me|When would)|Run \S+|Move the alarm called \S+ to) ((?:in|tomorrow|next|every|friday) .+?)(?: in [A-Z]\w+\/\w+)?(?:, only if| without| fire\?| in place of|: "|\.$)/,
    described: /time in words/i,
  },
  { heard: /(?:Call it|^Rename the alarm called \S+ to) ([\w-]+)/, described: /short name/i },
  { heard: /with the data (\{.*\})/, described: /data for that turn/i },
  { heard: / in ([A-Z]\w+\/\w+)/, described: /IANA zone/ },
  { heard: /the key ([\w-]+)/, described: /same key/i },
  { heard: /after exactly (\d+) seconds/, described: /this long from now/, value: ([, digits]) => Number(digits) },
  { heard: /exactly at (\S+?): /, described: /RFC 3339 instant with offset/ },
  { heard: /cron schedule (.+?): "/, described: /@daily/ },
  {
    heard: /by the rule (\S+?): "/,
    described: /RFC 5545/,
    topic: /rrule/,
    value: ([, rule], example: string) => example.replace(/(?<=RRULE:).*/, rule!),
  },
  { heard: /until (\S+)\.$/, described: /no fire after/i, topic: /ends/ },
  { heard: /(\d+) times in all/, described: /so many fires|max_fires/, topic: /ends/, value: ([, n]) => Number(n) },
  { heard: /the days of the calendar ([\w-]+)/, described: /installed calendar/, topic: /holidays/ },
  {
    heard: /only if "(\S+)" of (\S+) is (\w+):/,
    described: /exactly one of http/i,
    topic: /wake only if/,
    value: ([, pointer, url, equals], { http }) => ({ http: { ...http, url, pointer, equals } }),
  },
  {
    heard: /at each webhook of github with (\S+) "(\w+)"/,
    described: /source "webhook"/,
    topic: /webhook/,
    value: ([, pointer, equals], example) => ({ ...example, filter: { pointer, equals }, repeat: 'always' }),
  },
  {
    heard: /if no report comes for (P\w+)/,
    described: /nothing came in time/,
    topic: /none in time/,
    value: ([, every], example) => ({ ...example, every }),
  },
  {
    heard: /after the alarm called \S+ (failed|finished)/,
    described: /the id of the other one/,
    topic: /after an alarm/,
    value: ([, on], example, id) => ({ ...example, alarm: id, on }),
  },
  {
    heard: /^Run (\S+) /,
    described: /a command in place of the turn/i,
    topic: /command/,
    value: ([, program]) => ({ argv: [program] }),
  },
  { heard: /Set nothing/, described: /sets nothing/i, topic: /dry_run/, value: (_, example) => example },
  {
    heard: /without tools/,
    described: /turn without tools/,
    topic: /tools/,
    // As the page says.
    value: () => ['none'],
  },
  {
    heard: /more than (\d+) seconds late/,
    described: /a fire that is later/i,
    topic: /lateness/,
    value: ([, n]) => Number(n),
  },
  { heard: /while an earlier one runs/, described: /is dropped \(skip\)/, topic: /overlap/, value: () => 'skip' },
];

const isObject = (value: unknown): value is Args =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function parsed(text: string): Args {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}

const toolsOf = ({ tools = [] }: EndpointBody): Tool[] =>
  tools.map(({ function: { name, description, parameters } }) => ({
    ...{ name, description },
    ...(parameters as Pick<Tool, 'properties' | 'required'>),
  }));

/** The words of the person who caused the last turn, and the calls since. */
export function turnOf(messages: readonly EndpointMessage[]): { said?: string; steps: Step[] } {
  const from = messages.findLastIndex(({ role }) => role === 'user');
  const [, , said] = /^The person's message.*\n<<<message (\w+)\n([\s\S]*?)\nmessage \1>>>/m.exec(
    messages[from]?.content ?? '',
  ) ?? [undefined, undefined, undefined];
  const later = messages.slice(from + 1);
  const steps = later.flatMap(({ tool_calls: calls = [] }) =>
    calls.map(({ id, function: { name, arguments: args } }) => {
      const text = later.find(({ tool_call_id }) => tool_call_id === id)?.content ?? '';
      return { tool: name, args: parsed(args), result: parsed(text), text };
    }),
  );
  return { ...(said !== undefined && { said }), steps };
}

/** The first field of a tool whose description, or one of whose choices, fits. */
function fieldOf({ properties }: Tool, fits: (property: Property) => boolean): string | undefined {
  return Object.entries(properties).find(([, property]) => fits(property))?.[0];
}
const described = (pattern: RegExp) => (property: Property) => pattern.test(property.description);

type Found = { name: string; inMore: boolean; example?: unknown; beside?: Args };

/** Where a wish goes: a field of the schema, of the example in a description, or of a page that was read. */
function find(wish: Wish, tool: Tool, more: string | undefined, steps: readonly Step[]): Found | undefined {
  const name = fieldOf(tool, described(wish.described));
  if (name !== undefined && name !== more) return { name, inMore: false };
  const [shown] = /\{".*?\}/.exec(more === undefined ? '' : tool.properties[more]!.description) ?? [];
  for (const [name, example] of Object.entries(parsed(shown ?? '')))
    if (wish.described.test(name)) return { name, inMore: true, example };
  for (const { result } of steps)
    for (const [name, field] of Object.entries(
      (result.fields ?? {}) as Record<string, { about: string; more: Args }>,
    )) {
      if (!wish.described.test(field.about)) continue;
      const calls = (result.calls ?? []) as (Args & { more?: Args })[];
      const { kind } = calls.find((call) => call.more && name in call.more) ?? {};
      return { name, inMore: true, example: field.more[name], ...(kind !== undefined && { beside: { kind } }) };
    }
  return undefined;
}

/** The name that shares the most first letters. */
function nearest(name: string, names: readonly string[]): string {
  const shared = (other: string) => [...other].findIndex((letter, at) => letter !== name[at]);
  const score = (other: string) => (shared(other) === -1 ? other.length : shared(other));
  return names.toSorted((one, other) => score(other) - score(one))[0]!;
}

/** Where a field of a call is: beside `more`, or within. */
class Draft {
  readonly beside: Args;
  readonly within: Args;
  readonly #more: string | undefined;
  constructor({ ...beside }: Args, more: string | undefined) {
    const within = more === undefined ? undefined : beside[more];
    if (more !== undefined) delete beside[more];
    this.beside = beside;
    this.within = isObject(within) ? { ...within } : parsed(String(within ?? ''));
    this.#more = more;
  }
  set(name: string, value: unknown, inMore = name in this.within): this {
    (inMore ? this.within : this.beside)[name] = value;
    return this;
  }
  get(name: string): unknown {
    return name in this.within ? this.within[name] : this.beside[name];
  }
  omit(name: string): this {
    delete (name in this.within ? this.within : this.beside)[name];
    return this;
  }
  rename(name: string, to: string): this {
    const inMore = name in this.within;
    const value = this.get(name);
    return this.omit(name).set(to, value, inMore);
  }
  args(): Args {
    const within = Object.keys(this.within).length > 0 && { [this.#more!]: JSON.stringify(this.within) };
    return { ...this.beside, ...within };
  }
}

/** The call with the change that an error asks for; `undefined` when it asks for none. */
function corrected(
  draft: Draft,
  message: string,
  fill: (name: string, example: unknown) => unknown,
): Draft | undefined {
  const [, written] = /write `(.+?)` for/.exec(message) ?? [];
  if (written !== undefined) return draft.set(/^(?:more: )?(\w+)/.exec(message)![1]!, JSON.parse(written));
  const [, field, better] = /^(\w+): .*; write "(.+?)" or /.exec(message) ?? [];
  if (field !== undefined) return draft.set(field, better);
  const [, shown] = /right is, for example, (\{.*\})$/.exec(message) ?? [];
  for (const [name, example] of Object.entries(parsed(shown ?? ''))) return draft.set(name, fill(name, example));
  const [, unknown, allowed] = /unknown field "(\w+)"; allowed here: ([\w, ]+)/.exec(message) ?? [];
  if (unknown !== undefined) return draft.rename(unknown, nearest(unknown, allowed!.split(', ')));
  const [, number, text] = /(\w+) must be a number \(got "(.*?)"\)/.exec(message) ?? [];
  if (number !== undefined) return draft.set(number, SECONDS_OF_WORDS[text!]);
  const [, needless] = /omit (\w+)/.exec(message) ?? [];
  return needless !== undefined && draft.get(needless) !== undefined ? draft.omit(needless) : undefined;
}

const WHICH = /^(?:Which|Show|Page)/;
const isError = ({ result }: Step) => typeof result.code === 'string';

/** The next call, or the answer. */
function next(said: string, tools: readonly Tool[], steps: readonly Step[]): Call | string {
  const toolOf = (pattern: RegExp) => tools.find(({ description }) => pattern.test(description))!;
  const [set, list, cancel] = [/^Sets an alarm/, /^Lists your alarms/, /^Ends an alarm/].map(toolOf) as [
    Tool,
    Tool,
    Tool,
  ];
  const last = steps.at(-1);
  const [, label] = /alarm called ([\w-]+)|one called ([\w-]+)/.exec(said)?.filter(Boolean) ?? [];
  const [, start] = /the alarm ([0-9a-f]{4}[0-9a-f-]*)/.exec(said) ?? [];
  const rows = steps.filter(({ tool }) => tool === list.name).flatMap(({ result }) => (result.alarms ?? []) as Row[]);
  const row = rows.find((one) => label !== undefined && one.label === label);
  const listing = (fields: Args) => ({ tool: list.name, args: fields });
  const byText = fieldOf(list, described(/in label or message/i))!;

  if (WHICH.test(said)) {
    const [, words] = /mention "(.+?)"/.exec(said) ?? [];
    const cursor = last?.result.next_cursor;
    if (last === undefined && words !== undefined) return listing({ [byText]: words });
    if (last === undefined) return listing(start === undefined ? {} : { [fieldOf(list, described(/whole/))!]: start });
    if (label === undefined || row !== undefined || cursor === undefined) return row ? JSON.stringify(row) : last.text;
    return listing({ [fieldOf(list, described(/page before/))!]: cursor });
  }

  // The start of an id may be of several alarms.
  const id = row?.id.slice(0, 18) ?? (last !== undefined && isError(last) ? undefined : start);
  if (id === undefined && label !== undefined) {
    const paused = /^Resume/.test(said) && fieldOf(list, ({ enum: of = [] }) => of.includes('paused'));
    if (last?.tool === list.name) return `There is no alarm ${label}.`;
    return listing({ [byText]: label, ...(paused && { [paused]: 'paused' }) });
  }
  if (/^Cancel/.test(said))
    return last?.tool === cancel.name && !isError(last)
      ? last.text
      : { tool: cancel.name, args: { [cancel.required![0]!]: id } };

  const more = fieldOf(set, described(/further fields as JSON text/i))!;
  const help = fieldOf(set, described(/explains fields/))!;
  const wishes = WISHES.flatMap((wish) => {
    const heard = wish.heard.exec(said);
    return heard ? [{ wish, heard, found: find(wish, set, more, steps) }] : [];
  });
  for (const { wish, found } of wishes) {
    if (found) continue;
    const topics = set.properties[help]!.description.split(/[.;:]? (?=\w+: )/).slice(1);
    const [topic] = topics.find((one) => wish.topic?.test(one))?.split(':') ?? [];
    if (topic === undefined) return `No topic is about ${wish.topic}.`;
    if (steps.some(({ args }) => args[help] === topic)) return `The page ${topic} does not explain ${wish.described}.`;
    return { tool: set.name, args: { [help]: topic } };
  }

  const filled = ({ wish: { value = ([, text]) => text }, heard }: (typeof wishes)[number], example: unknown) =>
    value(heard, example, row?.id);
  if (last?.tool === set.name && !(help in last.args)) {
    if (!isError(last) || steps.filter(isError).length > 2) return last.text;
    const fill = (name: string, example: unknown) => filled(wishes.find(({ found }) => found!.name === name)!, example);
    const again = corrected(new Draft(last.args, more), String(last.result.message), fill);
    return again ? { tool: set.name, args: again.args() } : last.text;
  }
  const draft = new Draft({}, more);
  for (const wish of wishes) {
    const { name, inMore, example, beside = {} } = wish.found!;
    draft.set(name, filled(wish, example), inMore);
    for (const [other, value] of Object.entries(beside)) draft.set(other, value, false);
  }
  const [verb] = /^\w+/.exec(said)!;
  const action = fieldOf(set, ({ enum: choices = [] }) => choices.includes(verb.toLowerCase()));
  if (action !== undefined) draft.set(action, verb.toLowerCase(), false);
  const [, removed] = /^Remove the (\w+) of/.exec(said) ?? [];
  if (removed !== undefined) draft.set(fieldOf(set, described(/to empty/))!, [removed], false);
  const isChange = !/^(?:Wake|Run|When)/.test(said);
  if (isChange) draft.set(fieldOf(set, described(/alarm to change/i))!, id, false);
  return { tool: set.name, args: draft.args() };
}

function answerTo(said: string, tools: readonly Tool[], steps: readonly Step[]): Call | string {
  try {
    return next(said, tools, steps);
  } catch (thrown) {
    return `I cannot go on: ${String(thrown)}`;
  }
}

/** A mistake in the first call that sets an alarm. */
export type Slip = (args: Args) => Args;

/**
 * The model as an endpoint plays it. A turn that no person caused gets a short answer.
 *
 * @param slipOf the mistake for a task, if the model makes one
 */
export function mind(slipOf: (said: string) => Slip | undefined): Script {
  return (response, request) => {
    const { said, steps } = turnOf(request.body.messages);
    const tools = toolsOf(request.body);
    if (said === undefined || tools.length === 0) return saying('Nothing to do.')(response, request);
    const answer = answerTo(said, tools, steps);
    if (typeof answer === 'string') return saying(answer)(response, request);
    const { tool: name, args } = answer;
    const isFirst = !('help' in args) && steps.every((step) => 'help' in step.args || step.tool !== name);
    const slip = isFirst ? slipOf(said) : undefined;
    return calling({ name, args: slip ? slip(args) : args, id: `call_${steps.length}` })(response, request);
  };
}
