/**
 * What is asked of every request before anything else is looked at: that it names this console (DNS rebinding), and that
 * a write comes from one of its own pages. And what every answer says of itself.
 */
import { hostCheck } from '../kit/http/origin.ts';
import { ReveilleError } from '../wire/errors.ts';

const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "manifest-src 'self'",
  "form-action 'self'",
  "base-uri 'self'",
  "frame-ancestors 'none'",
].join('; ');

export const HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy': POLICY,
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), microphone=(), geolocation=(), payment=(), usb=()',
  'cache-control': 'no-store',
};

export type GuardFigures = { hostsRefused: number; originsRefused: number };

/** Whether the page that sent it is ours, as far as the browser says. */
function isFromElsewhere(request: Request): boolean {
  const { headers, method, url } = request;
  const own = new URL(url).origin;
  const origin = headers.get('origin');
  if (origin !== null && origin !== own) return true;
  const site = headers.get('sec-fetch-site');
  if (method === 'GET' || method === 'HEAD') {
    // A link on another page may lead here; nothing else there may.
    const isNavigation = headers.get('sec-fetch-mode') === 'navigate' && headers.get('sec-fetch-dest') === 'document';
    return site !== null && site !== 'same-origin' && site !== 'none' && !isNavigation;
  }
  // Every browser says where a write comes from; what does not say it is no page of ours.
  return origin === null || (site !== null && site !== 'same-origin');
}

/**
 * @param hosts names that pass besides loopback's
 * @returns throws ReveilleError `forbidden` for what must not come in
 */
export function createRequestGuard(hosts: readonly string[]) {
  const checkHost = hostCheck('127.0.0.1', hosts);
  const figures: GuardFigures = { hostsRefused: 0, originsRefused: 0 };
  return {
    figures,
    check(request: Request): void {
      try {
        checkHost(request.headers.get('host') ?? new URL(request.url).host);
      } catch (thrown) {
        figures.hostsRefused++;
        throw thrown;
      }
      if (!['GET', 'HEAD', 'POST'].includes(request.method))
        throw new ReveilleError('not_found', `${request.method} is not taken here`, { status: 405 });
      if (!isFromElsewhere(request)) return;
      figures.originsRefused++;
      throw new ReveilleError('forbidden', 'requests from pages of others are not taken here');
    },
  };
}
