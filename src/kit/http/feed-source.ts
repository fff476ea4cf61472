/** The port between an event feed and the store whose changes it serves. */

/** A stored change; `at` is epoch milliseconds, by the store's clock. */
export type FeedChange = { readonly owner: string; readonly at: number };

/** Of type `reset`: events may be missing. */
export type FeedEvent = { readonly type: string };

/** Stored changes and their events. */
export type FeedSource<Change, Event> = {
  /** Reports changes of the followed owners after they are stored. */
  follow(follower: {
    /** The feed changes the set. */
    readonly owners: ReadonlySet<string>;
    /** Must not throw. */
    readonly onChanges: (changes: readonly Change[]) => void;
    /** The store is closed, and reports nothing more. */
    readonly onClosed: () => void;
  }): Promise<{
    /** Resolves when all later changes of the owners that are in the set now will be reported. */
    refresh(): Promise<void>;
  }>;
  /** The changes of an owner since an instant, oldest first; `undefined` when there are too many. */
  changesSince(owner: string, since: number): Promise<readonly Change[] | undefined>;
  /** Changes may be missing. */
  lost(owner: string, at: number): Change;
  /** The same for the same change, however often it is found. */
  keyOf(change: Change): string;
  eventOf(change: Change): Event;
  /** The type of its event. */
  typeOf(change: Change): string;
  /** The event for changes of these types; without it, streams cannot be merged. */
  mergedEventOf?(types: readonly string[], at: number): Event;
  /** Another change usually follows soon, and both are sent together. */
  isPrelude?(change: Change): boolean;
  /** Makes a function, for the log of one owner, that adds missing changes before a change. */
  completer?(): (change: Change) => readonly Change[];
};

/** An event with its cursor, the `Last-Event-ID`. `text`: as `text/event-stream`, if several streams send it. */
export type FeedItem<Event> = { readonly id: string; readonly event: Event; readonly text?: string };
