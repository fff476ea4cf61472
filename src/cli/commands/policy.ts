/** `reveille policy check` and `explain`: the rules of a policy, and its decision about one call. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { effectivePolicy } from '../../executor/config.ts';
import { amountOf } from '../../executor/intent/stake.ts';
import type { Decision, PolicyRequest, Spend } from '../../executor/policy/policy.ts';
import { type ReadPolicy, readPolicy } from '../../executor/policy/read-policy.ts';
import { formatDuration } from '../../kit/clock/duration.ts';
import { JsonSyntaxError, readJsonWithPositions } from '../../kit/json/strict-json.ts';
import { oneLine } from '../../kit/text/hidden-characters.ts';
import { classify } from '../../mcp-host/classify.ts';
import { isObject } from '../../wire/json.ts';
import { agentManifestSchema, type ManifestTool, TOOL_SURFACES } from '../../wire/manifest.ts';
import { formatInstant, parseInstant } from '../../wire/rfc3339.ts';
import { parseOrThrow, showValue } from '../../wire/validate.ts';
import type { CliContext } from '../context.ts';
import { choiceFlag, fileFlag, instantFlag } from '../flags/flags.ts';
import { UsageError } from '../flags/usage-error.ts';
import { PACKAGE_ROOT } from '../home/package-root.ts';
import { columns, table } from '../screens/columns.ts';
import { readerOf } from '../screens/reader.ts';
import type { Reader } from '../screens/render.ts';

type Rule = NonNullable<ReadPolicy['file']['rules']>[number];

const json = (value: unknown) => JSON.stringify(value);

function patternWords(pattern: NonNullable<Rule['args']>[string]): string {
  const { equals, one_of, glob, matches, range, optional } = pattern;
  const words = [
    equals !== undefined && `is ${json(equals)}`,
    one_of && `is one of ${one_of.map(json).join(', ')}`,
    glob !== undefined && `is like ${json(glob)}`,
    matches !== undefined && `matches ${matches}`,
    range?.min !== undefined && `is at least ${range.min}`,
    range?.max !== undefined && `is at most ${range.max}`,
    optional && 'is there',
  ];
  return words.filter((word) => typeof word === 'string').join(' and ');
}

function amountWords(amounts: Readonly<Record<string, string | number>> | undefined, per: string): string[] {
  return Object.entries(amounts ?? {}).map(
    ([currency, amount]) => `at most ${`${amount} ${currency}`.trim()} a ${per}`,
  );
}

function conditionsOf({ args = {}, users, limits, unattended }: Rule): string {
  const words = [
    ...Object.entries(args).map(([pointer, pattern]) => `${pointer} ${patternWords(pattern)}`),
    ...(users ? [`for ${users.join(', ')}`] : []),
    ...amountWords(limits?.per_call, 'call'),
    ...amountWords(limits?.per_day, 'day'),
    ...(unattended ? ['also in turns of alarms'] : []),
  ];
  return words.length === 0 ? 'always' : words.join('; ');
}

function quietWords(hours: NonNullable<ReadPolicy['file']['quiet_hours']>[number]): string {
  const days = hours.days ? ` beginning on ${hours.days.join(', ')}` : '';
  return `${hours.from} to ${hours.to}${days}: ${hours.effect === 'deny' ? 'all calls are denied' : 'allowed calls need approval'}`;
}

function renderPolicy(policy: ReadPolicy, name: string, look: Reader): string[] {
  const { file } = policy;
  const facts = [
    ['SHA-256', policy.sha256],
    [
      'default',
      `${file.default ?? 'ask'} for the escalate class, ${file.default_natural ?? 'allow'} for natural tools`,
    ],
    ['days', `those of ${file.timezone ?? 'UTC'}`],
    ['questions', `wait ${formatDuration(policy.approvalTimeoutMs)} for an answer`],
    ...(file.quiet_hours ?? []).map((hours) => ['quiet', quietWords(hours)]),
  ];
  const rows = (file.rules ?? []).map((rule) => [rule.name, rule.effect, rule.tool, conditionsOf(rule)].map(oneLine));
  const lines = [
    `${look.paint('bold', oneLine(name))} is understood.`,
    '',
    ...columns(facts, look.width).map((line) => `  ${line}`),
  ];
  // Not shortened: the reader checks the rules.
  const whole = { ...look, width: Number.POSITIVE_INFINITY };
  lines.push('', ...(rows.length === 0 ? ['No rules.'] : table(['RULE', 'EFFECT', 'TOOL', 'WHEN'], rows, whole)));
  return lines;
}

const policyOf = ({ settings }: CliContext) => effectivePolicy(settings.EXECUTOR_POLICY, settings.EXECUTOR_MANIFEST);

export async function policyCheck(context: CliContext, given: string | undefined): Promise<void> {
  const path = given ?? policyOf(context);
  const policy = readPolicy(path);
  const { sha256, approvalTimeoutMs, file, warnings } = policy;
  const name = path ?? 'The policy of an executor without a file';
  context.out.result(
    { path, sha256, approval_timeout_ms: approvalTimeoutMs, policy: file, warnings },
    renderPolicy(policy, name, readerOf(context)),
  );
  if (context.out.json) return;
  for (const warning of warnings) context.out.remark(`${context.out.paint('yellow', 'Warning')}: ${oneLine(warning)}`);
}

export type PolicyExplainFlags = {
  tool?: string;
  args?: string;
  user?: string;
  unattended?: boolean;
  at?: string;
  spent?: readonly string[];
  amount?: string;
  surface?: string;
  manifest?: string;
};

const COLOURS = { allow: 'green', ask: 'yellow', deny: 'red' } as const;

function argumentsFlag(given: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = readJsonWithPositions(given, true).value;
  } catch (cause) {
    if (!(cause instanceof JsonSyntaxError)) throw cause;
    throw new UsageError(`--args must be JSON, such as '{"to":"bob"}' in single quotes (${cause.message})`, cause);
  }
  if (isObject(value)) return value;
  throw new UsageError(`--args must be a JSON object such as '{"to":"bob"}' (got ${showValue(value)})`);
}

/** `10 EUR`; a number alone has no currency. */
function amountFlag(name: string, given: string): { value: string; currency: string } {
  const match = /^(\d+(?:\.\d+)?)(?: (\S+))?$/.exec(given);
  if (match) return { value: match[1]!, currency: match[2] ?? '' };
  throw new UsageError(`${name} must be an amount such as "10.50 EUR" (got ${showValue(given)})`);
}

/** The manifest entry of a tool; `undefined` without a manifest or entry. */
function declared(context: CliContext, given: string | undefined, tool: string): Partial<ManifestTool> {
  const shipped = join(PACKAGE_ROOT, 'agents', 'executor.json');
  const path = given ?? context.settings.EXECUTOR_MANIFEST ?? (existsSync(shipped) ? shipped : undefined);
  if (path === undefined || path === 'none') return {};
  const text = fileFlag('--manifest', path);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new UsageError(`the manifest ${path} must be JSON (${(cause as Error).message})`, cause);
  }
  const [alias, name] = [tool.slice(0, tool.indexOf('/')), tool.slice(tool.indexOf('/') + 1)];
  const server = parseOrThrow(agentManifestSchema, value).servers.find((one) => one.alias === alias);
  const found = server?.tools?.find((one) => one.name === name);
  if (!found) context.out.remark(`${path} does not declare ${oneLine(tool)}: it is of the escalate class.`);
  return found ?? {};
}

function requestOf(context: CliContext, flags: PolicyExplainFlags): PolicyRequest {
  const { tool, spent = [] } = flags;
  if (tool === undefined || !/^[^/]+\/.+$/.test(tool))
    throw new UsageError(`--tool must be <alias>/<tool>, such as ledger/transfer (got ${showValue(tool)})`);
  const at = instantFlag('--at', flags.at);
  const now = at === undefined ? context.clock.now() : parseInstant(at)!;
  const args = argumentsFlag(flags.args ?? '{}');
  const { surface, side_effect_class: sideEffectClass, rail } = declared(context, flags.manifest, tool);
  const classified = classify({ name: tool.slice(tool.indexOf('/') + 1), surface, sideEffectClass });
  if (flags.surface === undefined && surface === undefined && classified.surface === 'natural')
    context.out.remark(
      'If its server marks it as destructive, the executor asks: hints of servers are not known here.',
    );
  const amount = flags.amount === undefined ? amountOf({ rail }, args) : amountFlag('--amount', flags.amount);
  return {
    user: flags.user ?? context.settings.MATRIX_USER_ID ?? '',
    tool,
    args,
    surface: choiceFlag('--surface', flags.surface, TOOL_SURFACES) ?? classified.surface,
    amount: amount === 'unreadable' ? undefined : amount,
    amountUnreadable: amount === 'unreadable',
    unattended: flags.unattended === true,
    spends: spent.map((given): Spend => ({ tool, ...amountFlag('--spent', given), at: now })),
    now,
  };
}

function situation({ tool, surface, amount, amountUnreadable, unattended, now }: PolicyRequest): string {
  const stake = amount ? `, about ${`${amount.value} ${amount.currency}`.trim()}` : '';
  const unreadable = amountUnreadable ? ', with an unreadable amount' : '';
  return `${tool} (${surface}${stake}${unreadable}) at ${formatInstant(now)}${unattended ? ', started by an alarm' : ''}`;
}

export async function policyExplain(
  context: CliContext,
  flags: PolicyExplainFlags,
  given: string | undefined,
): Promise<void> {
  const policy = readPolicy(given ?? policyOf(context));
  const request = requestOf(context, flags);
  const { decision, rules } = policy.explain(request);
  const look = readerOf(context);
  const rows = rules.map(({ rule, fit, because }) => [rule.name, rule.effect, fit, because].map(oneLine));
  const verdict = (word: Decision['effect']) => look.paint(COLOURS[word], word);
  context.out.result(
    {
      ...decision,
      policy_sha256: policy.sha256,
      surface: request.surface,
      amount: request.amount,
      rules: rules.map(({ rule, fit, because }) => ({ name: rule.name, effect: rule.effect, fit, because })),
    },
    [
      oneLine(situation(request)),
      `${verdict(decision.effect)}  by ${oneLine(decision.rule)}`,
      oneLine(decision.reason),
      ...(rows.length === 0 ? [] : ['', ...table(['RULE', 'EFFECT', 'FITS', 'BECAUSE'], rows, look)]),
    ],
  );
}
