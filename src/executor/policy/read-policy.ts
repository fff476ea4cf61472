/** Reads a policy file and reports every problem with line and column. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { type PositionedProblem, type PositionedYaml, readYaml } from '../../kit/yaml/strict-yaml.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { readIsoDuration } from '../../wire/iso-duration.ts';
import { checkInput } from '../../wire/validate.ts';
import { compileRule, type Defaults, decide, fitsGlob, type RuleFit } from './decide.ts';
import type { Decision, Policy, PolicyRequest } from './policy.ts';
import { type ArgumentPattern, type PolicyFile, type PolicyRule, policyFileSchema } from './policy-file.ts';

const POLICY_BYTES_MAX = 256 * 1024;
const APPROVAL_TIMEOUT = 'PT24H';

export type ReadPolicy = Policy & {
  readonly file: PolicyFile;
  /** Valid but suspicious content, as `path:line:column: sentence`. */
  readonly warnings: readonly string[];
  /** The decision, and how each rule applies to the call. */
  explain(request: PolicyRequest): { readonly decision: Decision; readonly rules: readonly RuleFit[] };
};

function makePolicy(file: PolicyFile, bytes: Uint8Array | string, warnings: readonly string[]): ReadPolicy {
  const rules = (file.rules ?? []).map(compileRule);
  const defaults: Defaults = { ...file, timezone: file.timezone ?? 'UTC' };
  const explain = (request: PolicyRequest) => {
    const fits = rules.map((test) => test(request));
    return { decision: decide(fits, request, defaults), rules: fits };
  };
  return {
    sha256: createHash('sha256').update(bytes).digest('hex'),
    approvalTimeoutMs: readIsoDuration(file.approval_timeout ?? APPROVAL_TIMEOUT)!,
    file,
    warnings,
    explain,
    decide: (request) => explain(request).decision,
  };
}

/** Problems of the text and of the shape, in the order of the file. */
function problemsIn(yaml: PositionedYaml, path: string): { file: PolicyFile } | { problems: string[] } {
  const checked = checkInput(policyFileSchema, yaml.value);
  const found: PositionedProblem[] = [...yaml.problems];
  if ('problems' in checked)
    for (const { path: at, sentence, ofName } of checked.problems) {
      const { line, column } = yaml.position(at, ofName);
      // A YAML error at the same position already explains the wrong shape.
      if (yaml.problems.some((known) => known.line === line && known.column === column)) continue;
      // So does a text of which nothing could be parsed.
      if (at.length === 0 && yaml.value === null && yaml.problems.length > 0) continue;
      found.push({ line, column, sentence: at.length === 0 ? `the file ${sentence}` : sentence });
    }
  if (found.length === 0 && 'value' in checked) return { file: checked.value };
  found.sort((one, other) => one.line - other.line || one.column - other.column);
  const lines = found.map(({ line, column, sentence }) => `${path}:${line}:${column}: ${sentence}`);
  return { problems: [...new Set(lines)] };
}

function warningsOf(
  { rules = [], quiet_hours = [], timezone }: PolicyFile,
  yaml: PositionedYaml,
  path: string,
): string[] {
  const at = (place: readonly PropertyKey[], sentence: string) => {
    const { line, column } = yaml.position(place);
    return `${path}:${line}:${column}: ${sentence}`;
  };
  const coveredWarnings = coveredRules(rules).map(({ index, by }) => {
    const verb = by.effect === 'deny' ? 'denies' : 'asks about';
    const sentence = `the rule "${rules[index]!.name}" has no effect: "${by.name}" ${verb} every call that matches it`;
    return at(['rules', index, 'name'], sentence);
  });
  const counted = quiet_hours.length > 0 || rules.some(({ limits }) => limits?.per_day !== undefined);
  const zone = at([], 'timezone is missing, so days and quiet hours use UTC; set one such as Europe/Berlin');
  return counted && timezone === undefined ? [zone, ...coveredWarnings] : coveredWarnings;
}

/**
 * @param path the prefix of each problem
 * @throws ReveilleError `invalid_request` with every problem on a line of its own, `path:line:column: sentence`
 */
export function parsePolicy(text: string, path: string): ReadPolicy {
  const yaml = readYaml(text);
  const read = problemsIn(yaml, path);
  if ('problems' in read) throw new ReveilleError('invalid_request', read.problems.join('\n'));
  const { file } = read;
  return makePolicy(file, text, warningsOf(file, yaml, path));
}

/**
 * Reads a policy's file.
 *
 * @param path without one, the policy is that of a file with only a version
 * @throws ReveilleError `invalid_request` as {@link parsePolicy}, and for a file that cannot be read
 */
export function readPolicy(path: string | undefined): ReadPolicy {
  if (path === undefined) return makePolicy({ version: 1 }, '', []);
  const refused = (why: string, cause?: unknown) => new ReveilleError('invalid_request', `${path}: ${why}`, { cause });
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (cause) {
    throw refused(`the policy cannot be read: ${(cause as Error).message}`, cause);
  }
  if (bytes.length > POLICY_BYTES_MAX)
    throw refused(`the policy must have at most ${POLICY_BYTES_MAX} bytes, it has ${bytes.length}`);
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    throw refused('the policy must be UTF-8 text; it holds bytes that are not', cause);
  }
  return parsePolicy(text, path);
}

const STRICTNESS = { allow: 0, ask: 1, deny: 2 } as const;

const same = (one: ArgumentPattern, other: ArgumentPattern | undefined) =>
  JSON.stringify(one) === JSON.stringify(other);

/**
 * Whether `stricter` matches every call that `rule` matches. It may miss such a case, but never reports a false one.
 */
function covers(stricter: PolicyRule, rule: PolicyRule): boolean {
  if (!fitsGlob(stricter.tool, rule.tool)) return false;
  if (stricter.users && !rule.users?.every((user) => stricter.users?.includes(user))) return false;
  return Object.entries(stricter.args ?? {}).every(([pointer, pattern]) => same(pattern, rule.args?.[pointer]));
}

/** Rules without effect, by their index, with the rule that covers them. */
function coveredRules(rules: readonly PolicyRule[]): { index: number; by: PolicyRule }[] {
  return rules.flatMap((rule, index) => {
    const by = rules.find((other) => STRICTNESS[other.effect] > STRICTNESS[rule.effect] && covers(other, rule));
    // Its limits still deny calls beyond them, even if another rule asks.
    return by === undefined || (rule.limits && by.effect === 'ask') ? [] : [{ index, by }];
  });
}
