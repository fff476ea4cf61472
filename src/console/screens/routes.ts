/** The screens by method and path, below the base of a session. */
import type { Screen } from '../request-context.ts';
import { applyTo, applyToSeveral, confirmAction, undoStep } from './alarm-actions.ts';
import { backfillAlarm, backfillScreen } from './alarm-backfill.ts';
import { editAlarm, editScreen, newAlarmScreen, readingScreen, setAlarm } from './alarm-form.ts';
import { alarmScreen, alarmsScreen } from './alarms.ts';
import {
  answerQuestion,
  approvalsScreen,
  countWaiting,
  intentScreen,
  passkeyChallenge,
  receiptFile,
} from './approvals.ts';
import { addFeed, feedsScreen, revokeFeed } from './calendar-feeds.ts';
import { chatScreen, conversationScreen, sendMessage, stopTurn } from './chat.ts';
import { clientsScreen, revokeClient } from './clients.ts';
import { dayScreen } from './day.ts';
import { confirmSuspend, machineScreen, restoreMachine, suspendMachine, wakeMachine } from './machine.ts';
import { notificationsScreen, removeChannel, subscribe, testChannel } from './notifications.ts';
import { addPasskey, confirmRevoke, makePasskey, passkeysScreen, revokePasskey } from './passkeys.ts';
import { answerServerQuestion } from './server-question.ts';
import { statusScreen } from './status.ts';
import { upcomingScreen } from './upcoming.ts';

export type ScreenRoute = { readonly method: 'GET' | 'POST'; readonly path: string; readonly screen: Screen };

const get = (path: string, screen: Screen): ScreenRoute => ({ method: 'GET', path, screen });
const post = (path: string, screen: Screen): ScreenRoute => ({ method: 'POST', path, screen });

export const SCREEN_ROUTES: readonly ScreenRoute[] = [
  get('upcoming', upcomingScreen),
  get('upcoming/calendar', feedsScreen),
  post('upcoming/calendar', addFeed),
  post('upcoming/calendar/revoke', revokeFeed),
  get('alarms', alarmsScreen),
  get('alarms/new', newAlarmScreen),
  post('alarms/new', setAlarm),
  get('alarms/reading', readingScreen),
  post('alarms/several', applyToSeveral),
  get('alarms/:id', alarmScreen),
  get('alarms/:id/edit', editScreen),
  post('alarms/:id/edit', editAlarm),
  get('alarms/:id/cancel', confirmAction('cancel')),
  get('alarms/:id/trigger', confirmAction('trigger')),
  get('alarms/:id/backfill', backfillScreen),
  post('alarms/:id/backfill', backfillAlarm),
  post('alarms/:id/pause', applyTo('pause')),
  post('alarms/:id/resume', applyTo('resume')),
  post('alarms/:id/redrive', applyTo('redrive')),
  post('undo', undoStep),
  get('chat', chatScreen),
  post('chat', sendMessage),
  get('chat/:id', conversationScreen),
  post('chat/:id', sendMessage),
  post('chat/:id/stop', stopTurn),
  post('chat/:id/question', answerServerQuestion),
  get('approvals', approvalsScreen),
  post('approvals/answer', answerQuestion),
  post('approvals/passkey', passkeyChallenge),
  get('approvals/passkeys', passkeysScreen),
  post('approvals/passkeys', addPasskey),
  post('approvals/passkeys/make', makePasskey),
  get('approvals/passkeys/:id/revoke', confirmRevoke),
  post('approvals/passkeys/:id/revoke', revokePasskey),
  get('approvals/waiting', countWaiting),
  get('approvals/:id', intentScreen),
  get('approvals/:id/receipt', receiptFile),
  get('machine', machineScreen),
  get('machine/suspend', confirmSuspend),
  post('machine/suspend', suspendMachine),
  post('machine/restore', restoreMachine),
  post('machine/wake', wakeMachine),
  get('notifications', notificationsScreen),
  post('notifications/subscribe', subscribe),
  post('notifications/remove', removeChannel),
  post('notifications/test', testChannel),
  get('clients', clientsScreen),
  post('clients/revoke', revokeClient),
  get('day', dayScreen),
  get('status', statusScreen),
];

/** Former paths; the rest of the path stays. */
export const MOVED: Readonly<Record<string, string>> = {
  ahead: 'upcoming',
  talk: 'chat',
  health: 'status',
  notices: 'notifications',
};
