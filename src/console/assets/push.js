// The page of channels: this browser as one of them. Permission is asked for when the person says so, and never before.
const pushKeyOf = (text) =>
  Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (c) => c.charCodeAt(0));
const canBeTold = 'serviceWorker' in navigator && 'PushManager' in window && 'Notification' in window;

if (canBeTold) {
  document.querySelector('[data-push-key]').hidden = false;
  document.querySelector('[data-push-none]').hidden = true;
}

async function turnOn(form) {
  try {
    if ((await Notification.requestPermission()) !== 'granted')
      throw new Error('this browser does not let us: its settings for this site say no to notifications');
    const worker = await navigator.serviceWorker.register('/worker.js', { scope: '/' });
    await navigator.serviceWorker.ready;
    const wish = { userVisibleOnly: true, applicationServerKey: pushKeyOf(form.dataset.pushKey) };
    form.elements.subscription.value = JSON.stringify(await worker.pushManager.subscribe(wish));
    form.requestSubmit();
  } catch (thrown) {
    tellIn(form, `It could not be turned on: ${thrown.message}`);
  }
}
document.addEventListener('submit', (event) => {
  const { target: form } = event;
  if (!form.dataset.pushKey || form.elements.subscription.value !== '') return;
  event.preventDefault();
  undisturbed(form, () => turnOn(form));
});
