// Notifications in this browser. The browser asks for permission only after the user turned them on.
const pushKeyOf = (text) =>
  Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (c) => c.charCodeAt(0));
const isSupported = 'serviceWorker' in navigator && 'PushManager' in window && 'Notification' in window;

if (isSupported) {
  document.querySelector('[data-push-key]').hidden = false;
  document.querySelector('[data-push-none]').hidden = true;
}

async function turnOn(form) {
  try {
    if ((await Notification.requestPermission()) !== 'granted')
      throw new Error('the settings of this browser refuse notifications of this site');
    const worker = await navigator.serviceWorker.register('/worker.js', { scope: '/' });
    await navigator.serviceWorker.ready;
    const options = { userVisibleOnly: true, applicationServerKey: pushKeyOf(form.dataset.pushKey) };
    form.elements.subscription.value = JSON.stringify(await worker.pushManager.subscribe(options));
    form.requestSubmit();
  } catch (thrown) {
    showError(form, `Notifications could not be turned on: ${thrown.message}`);
  }
}
document.addEventListener('submit', (event) => {
  const { target: form } = event;
  if (!form.dataset.pushKey || form.elements.subscription.value !== '') return;
  event.preventDefault();
  undisturbed(form, () => turnOn(form));
});
