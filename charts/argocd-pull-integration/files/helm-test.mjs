// What `helm test` runs in a pod: asks the controller whether it works, until it does or the time is over.
const { CONTROLLER_URL: url = '', TIMEOUT_SECONDS: seconds = '60' } = process.env;
const deadline = Date.now() + Number(seconds) * 1000;
for (;;) {
  let said;
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(5000) });
    said = `${response.status} ${await response.text()}`;
    if (response.ok) {
      console.log(`${url}: ${said}`);
      break;
    }
  } catch (error) {
    said = String(error.cause ?? error);
  }
  if (Date.now() > deadline) {
    console.error(`${url}: ${said}`);
    process.exit(1);
  }
  await new Promise((resolve) => setTimeout(resolve, 500));
}
