import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createRequestGuard } from './request-guard.ts';

const OWN = 'http://127.0.0.1:8087';

function refusal(method: string, headers: Record<string, string>): string | undefined {
  try {
    createRequestGuard([]).check(new Request(`${OWN}/x`, { method, headers }));
    return undefined;
  } catch (thrown) {
    return (thrown as Error).message;
  }
}

test('a refused request is answered with its own reason', () => {
  assert.equal(refusal('POST', { origin: OWN }), undefined);
  assert.match(refusal('POST', {}) ?? '', /^a POST to the console needs the header Origin/);
  const foreign =
    /^requests from pages of other sites are refused \(Origin is "https:\/\/evil\.example", and this console is http:\/\/127/;
  assert.match(refusal('POST', { origin: 'https://evil.example' }) ?? '', foreign);
  assert.match(
    refusal('POST', { origin: OWN, 'sec-fetch-site': 'cross-site' }) ?? '',
    /Sec-Fetch-Site is "cross-site"/,
  );
  assert.match(refusal('GET', { 'sec-fetch-site': 'cross-site' }) ?? '', /Sec-Fetch-Site is "cross-site"/);
  assert.match(refusal('PUT', { origin: OWN }) ?? '', /PUT is not supported/);
});
