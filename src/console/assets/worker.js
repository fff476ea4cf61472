// Shows push messages, also when no page is open. It makes no requests: the message contains the text.

const textOf = (value, most) => (typeof value === 'string' ? value.slice(0, most) : '');

// Links may lead only to this console.
function pageOf(address) {
  if (typeof address !== 'string') return undefined;
  try {
    const url = new URL(address, self.location.origin);
    return url.origin === self.location.origin ? url.href : undefined;
  } catch {
    return undefined;
  }
}

self.addEventListener('push', (event) => {
  let message = {};
  try {
    message = event.data?.json() ?? {};
  } catch {
    // An unreadable message is shown without its text.
  }
  const links = Array.isArray(message.links) ? message.links.filter((link) => pageOf(link?.url)) : [];
  const shown = self.registration.showNotification(textOf(message.title, 200) || 'New notification from Reveille', {
    body: textOf(message.text, 1000),
    // A repeated message replaces the first one.
    tag: textOf(message.id, 100) || undefined,
    icon: '/assets/icon.svg',
    requireInteraction: links.length > 0,
    actions: links.slice(0, 2).map(({ label }, at) => ({ action: String(at), title: textOf(label, 40) })),
    data: links.map(({ url }) => pageOf(url)),
  });
  event.waitUntil(shown);
});

self.addEventListener('notificationclick', (event) => {
  const { data, close } = event.notification;
  close.call(event.notification);
  const pages = Array.isArray(data) ? data : [];
  event.waitUntil(self.clients.openWindow(pages[Number(event.action)] ?? '/'));
});

// A new version starts at once: it shares no state with open pages.
self.addEventListener('install', () => self.skipWaiting());
