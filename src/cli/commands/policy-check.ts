/** `reveille policy check`: what a policy means, in words. */

import { type ReadPolicy, readPolicy } from '../../executor/policy/read-policy.ts';
import { formatDuration } from '../../kit/clock/duration.ts';
import { oneLine } from '../../kit/text/hidden-characters.ts';
import type { CliContext } from '../context.ts';
import { columns } from '../screens/columns.ts';
import { lookOf } from '../screens/look.ts';
import type { Look } from '../screens/render.ts';

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
    ...(unattended ? ['also when nobody is there'] : []),
  ];
  return words.length === 0 ? 'always' : words.join('; ');
}

function quietWords(hours: NonNullable<ReadPolicy['file']['quiet_hours']>[number]): string {
  const days = hours.days ? ` beginning on ${hours.days.join(', ')}` : '';
  return `${hours.from} to ${hours.to}${days}: ${hours.effect === 'deny' ? 'all is denied' : 'what is allowed is asked'}`;
}

function renderPolicy(policy: ReadPolicy, name: string, look: Look): string[] {
  const { file } = policy;
  const facts = [
    ['SHA-256', policy.sha256],
    [
      'default',
      `${file.default ?? 'ask'} for the escalate class, ${file.default_natural ?? 'allow'} for natural tools`,
    ],
    ['days', `those of ${file.timezone ?? 'UTC'}`],
    ['questions', `wait for their answer ${formatDuration(policy.approvalTimeoutMs)}`],
    ...(file.quiet_hours ?? []).map((hours) => ['quiet', quietWords(hours)]),
  ];
  const rows = (file.rules ?? []).map((rule) => [rule.name, rule.effect, rule.tool, conditionsOf(rule)].map(oneLine));
  const lines = [
    `${look.paint('bold', oneLine(name))} is understood.`,
    '',
    ...columns(facts, look.width).map((line) => `  ${line}`),
  ];
  // Somebody checks what is meant: nothing may be cut off.
  const [heading, ...table] = columns([['RULE', 'EFFECT', 'TOOL', 'WHEN'], ...rows], Number.POSITIVE_INFINITY);
  lines.push('', ...(rows.length === 0 ? ['No rules.'] : [look.paint('dim', heading!), ...table]));
  return lines;
}

export async function policyCheck(context: CliContext, given: string | undefined): Promise<void> {
  const path = given ?? context.settings.EXECUTOR_POLICY;
  const policy = readPolicy(path);
  const { sha256, approvalTimeoutMs, file, warnings } = policy;
  const name = path ?? 'The policy of an executor without a file';
  context.out.result(
    { path, sha256, approval_timeout_ms: approvalTimeoutMs, policy: file, warnings },
    renderPolicy(policy, name, lookOf(context)),
  );
  if (context.out.json) return;
  for (const warning of warnings) context.out.remark(`${context.out.paint('yellow', 'Warning')}: ${oneLine(warning)}`);
}
