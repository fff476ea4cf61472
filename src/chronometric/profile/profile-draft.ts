/** A new profile as text: what was answered, and every other field explained beside it. Pure. */
import { DEFAULT_ZONES } from './default-profile.ts';
import { formatWindow, meantTime, readTimeOfDay } from './time-of-day.ts';

/** What is asked for; a field without an answer stays a comment. */
export type ProfileAnswers = {
  readonly consent?: boolean;
  readonly endOfDay?: string;
  readonly breakMinutes?: number;
};

export const NO_ANSWERS: ProfileAnswers = {};

type Question = {
  readonly question: string;
  /** What an empty answer means. */
  readonly otherwise: string;
  /** @returns the answers with this one, or what would be one */
  read(text: string, answers: ProfileAnswers): ProfileAnswers | string;
};

export const PROFILE_QUESTIONS: readonly Question[] = [
  {
    question: 'When does your day end, such as 18:30?',
    otherwise: 'no end',
    read(text, answers) {
      const time = readTimeOfDay(text) === undefined ? meantTime(text) : text;
      return time === undefined ? 'Write a time such as 18:30.' : { ...answers, endOfDay: time };
    },
  },
  {
    question: 'After how many minutes of work should a break be suggested, 15 to 240?',
    otherwise: 'whatever the agent asks for',
    read(text, answers) {
      const minutes = /^\d{1,3}$/.test(text) ? Number(text) : Number.NaN;
      return minutes >= 15 && minutes <= 240
        ? { ...answers, breakMinutes: minutes }
        : 'Write a whole number from 15 to 240.';
    },
  },
  {
    question:
      'May Reveille ask the operating system how long keyboard and mouse have been still? It is never written down. yes or no?',
    otherwise: 'no',
    read(text, answers) {
      if (/^y(es)?$/i.test(text)) return { ...answers, consent: true };
      return /^no?$/i.test(text) ? { ...answers, consent: false } : 'Write yes or no.';
    },
  },
];

/** A field, as a comment where it says nothing. */
const field = (value: string | undefined, name: string, example: string) =>
  value === undefined ? `  # ${name}: ${example}` : `  ${name}: ${value}`;

/** @returns YAML that reads without a problem, and means exactly the answers */
export function profileText({ consent = false, endOfDay, breakMinutes }: ProfileAnswers): string {
  const zones = DEFAULT_ZONES.map((window) => `  #   ${window.zone}: "${formatWindow(window)}"`);
  return `# What you declare about your day, for the agents that work beside you. Nothing of it leaves this machine.
# It is read anew when it changes. "reveille profile check" says what it means; docs/profile.md explains every field.

privacy:
  # Only true is consent: how long keyboard and mouse have been still may then be asked, and is never written down.
  os_idle_consent: ${consent}

chronometric:
  # After this many minutes of work a break is suggested, whatever the agent asks for (15 to 240).
${field(breakMinutes?.toString(), 'hyperfocus_break_minutes', '60')}

  # Minutes of work after which the suggestion is gentle, a nudge, hard.
  # hyperfocus_ladder_minutes: [60, 90, 120]

  # From then on it is late, and a suggestion is one step firmer; until the next day begins.
${field(endOfDay === undefined ? undefined : `"${endOfDay}"`, 'end_of_day_local', '"18:30"')}
  # logical_day_start: "04:00"

  # How much may be expected of you at which hour. What is in none is night_owl_caution.
  # zones:
${zones.join('\n')}

  # What differs on some days.
  # weekday_overrides:
  #   friday: {end_of_day_local: "16:00"}

  # Hours in which a break is asked for firmly, whatever was worked before.
  # protected_windows:
  #   - {label: dinner, from: "18:30", to: "19:30", days: [monday, tuesday]}

  # auto_close closes a session that was forgotten when the next one begins; with error the agent has to end it.
  # session_overlap_policy: auto_close

  # teaching, marking, exam, deadlines or break.
  # calendar_phase: teaching
  # deadline_cluster_awareness: true
  # motor_fatigue_aware: true

  # The zone that you live in, where it is not that of this machine.
  # timezone: Europe/Berlin
`;
}
