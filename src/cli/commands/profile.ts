/** `reveille profile check` and `init`: the meaning of a profile, and a first one. Existing profiles are never overwritten. */
import { resolve } from 'node:path';
import { createInterface } from 'node:readline/promises';
import {
  type LocalTime,
  localTimeAt,
  logicalDay,
  protectedWindowAt,
  zoneAt,
  zonesOfDay,
} from '../../chronometric/profile/day-rules.ts';
import { findProfile, newProfileLocation } from '../../chronometric/profile/find-profile.ts';
import type { DayRules, LocalWindow, Profile, ProfileProblem } from '../../chronometric/profile/profile.ts';
import {
  NO_ANSWERS,
  PROFILE_QUESTIONS,
  type ProfileAnswers,
  profileText,
} from '../../chronometric/profile/profile-draft.ts';
import { isThere, readProfileFile } from '../../chronometric/profile/profile-file.ts';
import { DAY_FIELDS } from '../../chronometric/profile/read-day-rules.ts';
import { NO_PROFILE, type ProfileReading, unreadable } from '../../chronometric/profile/read-profile.ts';
import { formatTimeOfDay, formatWindow } from '../../chronometric/profile/time-of-day.ts';
import { machineZone } from '../../kit/clock/zone.ts';
import { writePrivateFile } from '../../kit/identity/private-file.ts';
import { DEFAULT_HOURS } from '../../kit/phrase/reading.ts';
import { oneLine } from '../../kit/text/hidden-characters.ts';
import { DAYS } from '../../wire/chronometric-vocabulary.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { EXIT } from '../cli-process.ts';
import type { CliContext } from '../context.ts';
import { UsageError } from '../flags/usage-error.ts';
import { columns, table } from '../screens/columns.ts';
import { readerOf } from '../screens/reader.ts';
import type { Reader } from '../screens/render.ts';

/** A field, its meaning in one or more lines, and the line of its source. */
type Row = { readonly field: string; readonly means: readonly string[]; readonly line?: number };

function find(
  { settings }: CliContext,
  given: string | undefined,
): { path?: string; from?: string; reading: ProfileReading } {
  if (given !== undefined) return { path: resolve(given), reading: readProfileFile(resolve(given)).reading };
  const { path, from, missing } = findProfile(settings, isThere);
  const place = { ...(path !== undefined && { path }), ...(from !== undefined && { from }) };
  if (missing !== undefined) return { ...place, reading: unreadable(missing, path) };
  return { ...place, reading: path === undefined ? NO_PROFILE : readProfileFile(path).reading };
}

const windowWords = (window: LocalWindow) => formatWindow(window).replace('-', ' to ');

const zoneWords = ({ zones }: DayRules) =>
  zonesOfDay(zones).map((stretch) => `${windowWords(stretch)} ${stretch.zone ?? 'unknown'}`);

const minutes = (count: number) => `${count} min`;
const ladderWords = ({ ladder }: DayRules) => ladder.value.map(minutes).join(', ');
const endWords = ({ endOfDay }: DayRules) => (endOfDay ? formatTimeOfDay(endOfDay.value) : 'none');
const breakWords = ({ breakMinutes }: DayRules) =>
  breakMinutes ? minutes(breakMinutes.value) : "the caller's threshold";

const orNotSaid = (value: string | boolean | undefined) => String(value ?? 'not said');

/** The text of each field that may differ by weekday. */
const DAY_WORDS: Readonly<Record<(typeof DAY_FIELDS)[number], (rules: DayRules) => string | readonly string[]>> = {
  hyperfocus_break_minutes: breakWords,
  hyperfocus_ladder_minutes: ladderWords,
  end_of_day_local: endWords,
  zones: zoneWords,
};

function rowsOf({ profile, usual, declared }: ProfileReading, own: string | undefined): Row[] {
  const row = (field: string, means: string | readonly string[]): Row => {
    const line = declared.get(field);
    return { field, means: [means].flat(), ...(line !== undefined && { line }) };
  };
  const ofDay = (prefix: string, rules: DayRules) =>
    DAY_FIELDS.map((name) => row(`${prefix}.${name}`, DAY_WORDS[name](rules)));
  const overrides = DAYS.flatMap((day) => ofDay(`chronometric.weekday_overrides.${day}`, profile.rulesOf(day)));
  const windows = profile.protectedWindows.map(
    (window): Row => ({
      field: 'chronometric.protected_windows',
      means: [`${windowWords(window)} ${window.label}${window.days ? `, on ${window.days.join(', ')}` : ''}`],
      line: window.line,
    }),
  );
  return [
    row('privacy.os_idle_consent', profile.osIdleConsent ? 'given' : 'not given'),
    ...ofDay('chronometric', usual),
    ...overrides.filter(({ line }) => line !== undefined),
    row('chronometric.logical_day_start', formatTimeOfDay(profile.logicalDayStart)),
    row('chronometric.usual_time_local', formatTimeOfDay(profile.usualTime ?? DEFAULT_HOURS.usual)),
    ...(windows.length > 0 ? windows : [row('chronometric.protected_windows', 'none')]),
    row('chronometric.session_overlap_policy', profile.overlapPolicy),
    row('chronometric.calendar_phase', orNotSaid(profile.calendarPhase)),
    row('chronometric.deadline_cluster_awareness', orNotSaid(profile.deadlineClusterAwareness)),
    row('chronometric.motor_fatigue_aware', orNotSaid(profile.motorFatigueAware)),
    row('chronometric.timezone', profile.timezone ?? `that of this computer, ${own ?? 'which cannot be read'}`),
  ];
}

/** The values at this moment. */
function todayOf(profile: Profile, local: LocalTime) {
  const { day, rules, pastEndOfDay } = logicalDay(profile, local);
  const window = protectedWindowAt(profile, local.day, local.minute);
  return {
    ...{ day: local.day, time: formatTimeOfDay(local.minute), rules_of: day },
    energy_zone: zoneAt(profile, local.day, local.minute),
    break_minutes: rules.breakMinutes?.value ?? null,
    ladder_minutes: rules.ladder.value,
    end_of_day_local: rules.endOfDay ? formatTimeOfDay(rules.endOfDay.value) : null,
    past_end_of_day: pastEndOfDay ?? null,
    protected_window: window?.label ?? null,
    rules,
  };
}

type Today = ReturnType<typeof todayOf>;

function renderToday(today: Today, zone: string, look: Reader): string[] {
  const end = today.end_of_day_local;
  const facts: [string, string][] = [
    ['rules', `those of ${today.rules_of}${today.rules_of === today.day ? '' : ', whose day has not ended'}`],
    ['energy zone', today.energy_zone],
    ['end of day', end === null ? 'none' : `${end}${today.past_end_of_day ? ', which is past' : ''}`],
    ['break', breakWords(today.rules)],
    ['ladder', ladderWords(today.rules)],
    ['protected', today.protected_window ?? 'not now'],
  ];
  const title = `Now: ${today.day}, ${today.time} (${zone})`;
  return [
    '',
    look.paint('dim', title),
    ...columns(
      facts.map((fact) => fact.map(oneLine)),
      look.width,
    ).map((line) => `  ${line}`),
  ];
}

const problemLine = (path: string, { severity, line, column, sentence }: ProfileProblem) =>
  `${path}:${line}:${column}: ${severity}: ${sentence}`;

function heading(path: string | undefined, from: string | undefined, reading: ProfileReading, look: Reader): string {
  if (path === undefined) return 'There is no profile: defaults apply. Write one with: reveille profile init';
  const errors = reading.problems.filter(({ severity }) => severity === 'error').length;
  const verdict = reading.unreadable !== undefined ? 'cannot be read' : errors > 0 ? 'is valid in part' : 'is valid';
  return `${look.paint('bold', oneLine(path))} ${verdict}${from === undefined ? '' : ` (${from})`}.`;
}

export async function profileCheck(context: CliContext, given: string | undefined): Promise<void> {
  const look = readerOf(context);
  const { path, from, reading } = find(context, given);
  const { profile, problems, unreadable: why } = reading;
  const own = machineZone(context.settings.TZ);
  const zone = profile.timezone ?? look.zone;
  const today = todayOf(profile, localTimeAt(zone, look.now));
  const rows = rowsOf(reading, own);
  const hasZone = (profile.timezone ?? own) !== undefined;
  const ok = hasZone && problems.every(({ severity }) => severity !== 'error');
  const { rules, ...moment } = today;
  const data = {
    ...{ path: path ?? null, from: from ?? null, ok, unreadable: why ?? null },
    fields: rows.map(({ field, means, line }) => ({ field, means: means.join(', '), line: line ?? null })),
    today: {
      ...moment,
      timezone: zone,
      zones: zonesOfDay(rules.zones).map((one) => ({ window: formatWindow(one), zone: one.zone ?? 'unknown' })),
    },
    problems,
  };
  const cells = rows.flatMap(({ field, means, line }) =>
    means.map((words, at) =>
      (at > 0 ? ['', '', words] : [field, line === undefined ? 'default' : `line ${line}`, words]).map(oneLine),
    ),
  );
  // Not shortened: the reader checks the values.
  const lines = table(['FIELD', 'FROM', 'MEANS'], cells, { ...look, width: Number.POSITIVE_INFINITY });
  const understood = why === undefined ? ['', ...lines, ...renderToday(today, zone, look)] : [];
  context.out.result(data, [heading(path, from, reading, look), ...understood]);
  if (!context.out.json && problems.length > 0) {
    const shown =
      why !== undefined && problems.length === 1 && !why.startsWith(`${path}:`)
        ? [why]
        : problems.map((one) => problemLine(path ?? '', one));
    for (const line of shown) context.out.remark(oneLine(line));
  }
  if (!context.out.json && !hasZone)
    context.out.remark("the computer's time zone cannot be read; set TZ, or chronometric.timezone in the profile");
  if (!ok) context.process.exitCode = EXIT.failed;
}

export type ProfileInitFlags = { yes?: boolean };

/** Prompts for each answer until it is valid. */
async function ask({ out, process }: CliContext): Promise<ProfileAnswers> {
  const reader = createInterface({ input: process.stdin, output: process.stdout });
  // At the end of the input there is no answer.
  const left = new Promise<never>((_, reject) =>
    reader.once('close', () => reject(new ReveilleError('conflict', 'the input ended; nothing was written'))),
  );
  left.catch(() => {});
  let answers = NO_ANSWERS;
  try {
    for (const { question, otherwise, read } of PROFILE_QUESTIONS)
      for (;;) {
        const given = (await Promise.race([reader.question(`${question} [${otherwise}] `), left])).trim();
        const answered = given === '' ? answers : read(given, answers);
        if (typeof answered !== 'string') {
          answers = answered;
          break;
        }
        out.line(`  ${answered}`);
      }
    return answers;
  } finally {
    reader.close();
  }
}

export async function profileInit(context: CliContext, { yes }: ProfileInitFlags): Promise<void> {
  const { out } = context;
  const place = newProfileLocation(context.settings, isThere);
  if (!place)
    throw new ReveilleError(
      'invalid_request',
      'there is no home folder to write a profile to; set HOME or REVEILLE_PROFILE',
    );
  const { path, hides } = place;
  if (isThere(path))
    throw new ReveilleError('conflict', `${path} exists and is not overwritten; see it with: reveille profile check`);
  const interactive = context.process.stdin.isTTY === true && out.live;
  if (!yes && !interactive)
    throw new UsageError('no terminal to ask at; "reveille profile init --yes" writes a profile without questions');
  if (!yes) {
    out.line(`A few questions; Enter accepts the value in brackets. The answers are stored only in ${path}.`);
    out.line();
  }
  const answers = yes ? NO_ANSWERS : await ask(context);
  writePrivateFile(path, profileText(answers));
  out.result({ path, hides: hides ?? null }, [`Wrote ${path}`, '  check it with: reveille profile check']);
  if (hides !== undefined) out.remark(`${hides} is no longer read: ${path} comes before it.`);
}
