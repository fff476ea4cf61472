/** What a look at a check's address, path or command has found. */
import { createHash } from 'node:crypto';
import { OUTPUT_MAX_BYTES, VALUE_MAX_BYTES } from '../../wire/conditions.ts';
import { utf8Bytes } from '../../wire/text.ts';

export type Finding = {
  /** Whether the agent is to be woken. */
  readonly yes: boolean;
  /** In plain words, without text from outside. */
  readonly reason: string;
  /** What the next check is compared with, if this wake is accepted. */
  readonly value?: string;
  /** What the agent is shown, as data. */
  readonly output?: string;
};

/** It cannot be told whether the agent is to be woken; `on_error` decides. */
export class Undecided extends Error {
  readonly output: string | undefined;

  constructor(reason: string, output?: string) {
    super(reason);
    this.output = output;
  }
}

/** The check may not or cannot be made at all. The agent is woken, so that it is noticed. */
export class NotAllowed extends Undecided {
  /** Its author lacks a permission. */
  readonly isPermission: boolean;

  constructor(reason: string, { isPermission = false } = {}) {
    super(reason);
    this.isPermission = isPermission;
  }
}

export const digestOf = (content: string | Uint8Array) =>
  `sha256:${createHash('sha256').update(content).digest('hex')}`;

/** A value as it is stored: itself, or its digest where it is too long. */
export function storedValue(text: string): string {
  return utf8Bytes(text) <= VALUE_MAX_BYTES ? text : digestOf(text);
}

/** How a value relates to that of the last wake. @param what it is, for the reason */
export function comparedWith(last: string | undefined, value: string, what: string): Omit<Finding, 'output'> {
  if (last === undefined) return { yes: true, value, reason: `${what} is known for the first time` };
  const yes = last !== value;
  return { yes, value, reason: `${what} ${yes ? 'has changed' : 'has not changed'} since the last wake` };
}

/** Text from outside for the agent: bounded, and without control characters except line breaks and tabs. */
export function outputOf(text: string, mostBytes = OUTPUT_MAX_BYTES): string | undefined {
  const clean = text
    .toWellFormed()
    .replaceAll(/[^\P{Cc}\n\t]/gu, ' ')
    .trimEnd();
  if (clean === '') return undefined;
  if (utf8Bytes(clean) <= mostBytes) return clean;
  return `${Buffer.from(clean)
    .subarray(0, mostBytes)
    .toString('utf8')
    .replace(/\u{fffd}$/u, '')}\n[… cut …]`;
}
