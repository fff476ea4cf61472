/** Which screen answers which path, below the base of a session. */
import type { Screen } from '../request-context.ts';
import { aheadScreen } from './upcoming.ts';
import { askAbout, doTo, doToSeveral, undoStep } from './alarm-actions.ts';
import { editAlarm, editScreen, newAlarmScreen, readingScreen, setAlarm } from './alarm-form.ts';
import { alarmScreen, alarmsScreen } from './alarms.ts';
import { answerQuestion, approvalsScreen, askPasskey, countWaiting, intentScreen, receiptFile } from './approvals.ts';
import { dayScreen } from './day.ts';
import { healthScreen } from './status.ts';
import { askSuspend, machineScreen, restoreMachine, suspendMachine, wakeMachine } from './machine.ts';
import { noticesScreen, removeNotice, subscribe, testNotice } from './notifications.ts';
import { addPasskey, askRevoke, makePasskey, passkeysScreen, revokePasskey } from './passkeys.ts';
import { conversationScreen, sayScreen, stopScreen, talkScreen } from './chat.ts';

export type ScreenRoute = { readonly method: 'GET' | 'POST'; readonly path: string; readonly screen: Screen };

const get = (path: string, screen: Screen): ScreenRoute => ({ method: 'GET', path, screen });
const post = (path: string, screen: Screen): ScreenRoute => ({ method: 'POST', path, screen });

export const SCREEN_ROUTES: readonly ScreenRoute[] = [
  get('ahead', aheadScreen),
  get('alarms', alarmsScreen),
  get('alarms/new', newAlarmScreen),
  post('alarms/new', setAlarm),
  get('alarms/reading', readingScreen),
  post('alarms/several', doToSeveral),
  get('alarms/:id', alarmScreen),
  get('alarms/:id/edit', editScreen),
  post('alarms/:id/edit', editAlarm),
  get('alarms/:id/cancel', askAbout('cancel')),
  get('alarms/:id/trigger', askAbout('trigger')),
  post('alarms/:id/pause', doTo('pause')),
  post('alarms/:id/resume', doTo('resume')),
  post('alarms/:id/redrive', doTo('redrive')),
  post('undo', undoStep),
  get('talk', talkScreen),
  post('talk', sayScreen),
  get('talk/:id', conversationScreen),
  post('talk/:id', sayScreen),
  post('talk/:id/stop', stopScreen),
  get('approvals', approvalsScreen),
  post('approvals/answer', answerQuestion),
  post('approvals/passkey', askPasskey),
  get('approvals/passkeys', passkeysScreen),
  post('approvals/passkeys', addPasskey),
  post('approvals/passkeys/make', makePasskey),
  get('approvals/passkeys/:id/revoke', askRevoke),
  post('approvals/passkeys/:id/revoke', revokePasskey),
  get('approvals/waiting', countWaiting),
  get('approvals/:id', intentScreen),
  get('approvals/:id/receipt', receiptFile),
  get('machine', machineScreen),
  get('machine/suspend', askSuspend),
  post('machine/suspend', suspendMachine),
  post('machine/restore', restoreMachine),
  post('machine/wake', wakeMachine),
  get('notices', noticesScreen),
  post('notices/subscribe', subscribe),
  post('notices/remove', removeNotice),
  post('notices/test', testNotice),
  get('day', dayScreen),
  get('health', healthScreen),
];
