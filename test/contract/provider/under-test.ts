/** Helpers that the tests of the contract share. */
import type { TestContext } from 'node:test';
import type { Daemon } from '../../../src/router/providers/provider.ts';
import { eventually } from '../../support/eventually.ts';
import type { OpenProvider, ProviderUnderTest } from './provider-under-test.ts';

/** A provider that is closed when the test has ended. */
export async function openFor(t: TestContext, open: OpenProvider): Promise<ProviderUnderTest> {
  const underTest = await open();
  t.after(() => underTest.close());
  return underTest;
}

/** A signal that never aborts. */
export const patient = () => new AbortController().signal;

/** Starts the machine and waits for it. */
export function start({ provider, machine }: ProviderUnderTest, states: string[] = []): Promise<Daemon> {
  return provider.start(machine, patient(), (text) => states.push(text));
}

/** The status of the daemon's answer to a health query. */
export async function healthOf(url: string): Promise<number> {
  const response = await fetch(`${url}/healthz`);
  await response.body?.cancel();
  return response.status;
}

/** The error of a rejected promise; fails the test when the promise resolves. */
export async function rejectionOf(promise: Promise<unknown>): Promise<Error> {
  try {
    await promise;
  } catch (thrown) {
    if (thrown instanceof Error) return thrown;
    throw thrown;
  }
  throw new Error('it was not rejected');
}

/** Advances the clock until a promise has settled, and returns its outcome. */
export async function advancing<T>({ clock }: ProviderUnderTest, promise: Promise<T>, stepMs = 100): Promise<T> {
  let settled = false;
  const done = promise.finally(() => {
    settled = true;
  });
  done.catch(() => {});
  await eventually('it settles', () => {
    if (!settled) clock.advance(stepMs);
    return settled;
  });
  return done;
}
