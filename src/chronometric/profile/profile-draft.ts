/** A new profile as text: the answers, and every other field explained. Pure. */
import { DEFAULT_ZONES } from './profile.ts';
import { formatWindow, meantTime, readTimeOfDay } from './time-of-day.ts';

/** The questions; a field without an answer stays a comment. */
export type ProfileAnswers = {
  readonly consent?: boolean;
  readonly endOfDay?: string;
  readonly breakMinutes?: number;
};

export const NO_ANSWERS: ProfileAnswers = {};

type Question = {
  readonly question: string;
  /** The meaning of an empty answer. */
  readonly otherwise: string;
  /** @returns the answers with this one, or the form of a valid one */
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
    otherwise: "the caller's threshold",
    read(text, answers) {
      const minutes = /^\d{1,3}$/.test(text) ? Number(text) : Number.NaN;
      return minutes >= 15 && minutes <= 240
        ? { ...answers, breakMinutes: minutes }
        : 'Write a whole number from 15 to 240.';
    },
  },
  {
    question: 'May Reveille read how long keyboard and mouse have been idle? It is never stored. yes or no?',
    otherwise: 'no',
    read(text, answers) {
      if (/^y(es)?$/i.test(text)) return { ...answers, consent: true };
      return /^no?$/i.test(text) ? { ...answers, consent: false } : 'Write yes or no.';
    },
  },
];

/** A field; a comment without a value. */
const field = (value: string | undefined, name: string, example: string) =>
  value === undefined ? `  # ${name}: ${example}` : `  ${name}: ${value}`;

/** @returns YAML that reads without a problem, and means exactly the answers */
export function profileText({ consent = false, endOfDay, breakMinutes }: ProfileAnswers): string {
  const zones = DEFAULT_ZONES.map((window) => `  #   ${window.zone}: "${formatWindow(window)}"`);
  return `# Your day, for the agents that work with you. It stays on this computer.
# Changes apply at once. Check it with: reveille profile check. All fields: reveille docs profile

privacy:
  # Only true is consent: the idle time of keyboard and mouse may then be read, and is never stored.
  os_idle_consent: ${consent}

chronometric:
  # Minutes of work until a break is suggested; replaces the agent's threshold (15 to 240).
${field(breakMinutes?.toString(), 'hyperfocus_break_minutes', '60')}

  # Minutes of work until a suggestion is gentle, a nudge, hard.
  # hyperfocus_ladder_minutes: [60, 90, 120]

  # From then on suggestions are one step firmer, until the next day begins.
${field(endOfDay === undefined ? undefined : `"${endOfDay}"`, 'end_of_day_local', '"18:30"')}
  # logical_day_start: "04:00"

  # The time of an alarm for a day without a time, such as "tomorrow".
  # usual_time_local: "09:00"

  # Expected energy by hour. Other hours are night_owl_caution.
  # zones:
${zones.join('\n')}

  # Different rules on some days.
  # weekday_overrides:
  #   friday: {end_of_day_local: "16:00"}

  # Hours in which a break is suggested firmly, whatever was worked before.
  # protected_windows:
  #   - {label: dinner, from: "18:30", to: "19:30", days: [monday, tuesday]}

  # auto_close closes a forgotten session when the next one starts; with error the agent has to end it.
  # session_overlap_policy: auto_close

  # teaching, marking, exam, deadlines or break.
  # calendar_phase: teaching
  # deadline_cluster_awareness: true
  # motor_fatigue_aware: true

  # Your time zone, if it differs from the computer's.
  # timezone: Europe/Berlin
`;
}
