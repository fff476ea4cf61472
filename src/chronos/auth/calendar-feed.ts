/** The addresses of calendar feeds, and the secrets in them. Pure but for randomness and hashing. */
import { randomBytes } from 'node:crypto';
import { randomSecret, sameSecret, tokenDigest } from '../../kit/identity/secrets.ts';
import { FEEDS_ROOT } from '../../wire/calendar-feed.ts';
import { labelSchema, ownerOf } from '../../wire/did.ts';
import type { CalendarFeed } from '../store/store.ts';

/** `<id>.<owner>.<secret>.ics` */
const ADDRESS = /^([0-9a-f]{12})\.([\w-]{1,200})\.([\w-]{43})\.ics$/;

/** Compared for a feed that does not exist, so that the answer takes the same time. */
const NO_DIGEST = tokenDigest('no such feed');

/** A feed with a new secret, and its path, which nothing stores. */
export function newFeed(given: Pick<CalendarFeed, 'owner' | 'name' | 'messages' | 'createdAt' | 'madeBy'>): {
  feed: CalendarFeed;
  path: string;
} {
  const secret = randomSecret();
  const id = randomBytes(6).toString('hex');
  const path = `${FEEDS_ROOT}${id}.${Buffer.from(given.owner).toString('base64url')}.${secret}.ics`;
  return { feed: { ...given, id, digest: tokenDigest(secret) }, path };
}

/** What an address names. */
export type FeedAddress = {
  readonly owner: string;
  /** The feed among those of its owner, if the secret is its own; every other case takes the same time. */
  of(feeds: readonly CalendarFeed[]): CalendarFeed | undefined;
};

/** Reads the last segment of an address; `undefined` for one that {@link newFeed} cannot have made. */
export function readFeedAddress(address: string): FeedAddress | undefined {
  const [, id = '', encoded = '', secret = ''] = ADDRESS.exec(address) ?? [];
  const label = labelSchema.safeParse(Buffer.from(encoded, 'base64url').toString('utf8'));
  if (id === '' || !label.success) return undefined;
  return {
    owner: ownerOf(label.data),
    of(feeds) {
      const feed = feeds.find((one) => one.id === id);
      const isIts = sameSecret(tokenDigest(secret), feed?.digest ?? NO_DIGEST);
      return isIts ? feed : undefined;
    },
  };
}
