// Shows what a push service brings, also when no page is open. It reads nothing and asks nobody: the words are in the message.

const words = (value, most) => (typeof value === 'string' ? value.slice(0, most) : '');

// Only pages of this console are led to.
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
  let said = {};
  try {
    said = event.data?.json() ?? {};
  } catch {
    // What is no message of ours is told without its words.
  }
  const links = Array.isArray(said.links) ? said.links.filter((link) => pageOf(link?.url)) : [];
  const shown = self.registration.showNotification(words(said.title, 200) || 'Reveille has something to tell you', {
    body: words(said.text, 1000),
    // The same message once more takes the place of the first.
    tag: words(said.id, 100) || undefined,
    icon: '/assets/icon.svg',
    requireInteraction: links.length > 0,
    actions: links.slice(0, 2).map(({ label }, at) => ({ action: String(at), title: words(label, 40) })),
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

// A new version takes over at once: it has no pages to be at odds with.
self.addEventListener('install', () => self.skipWaiting());
