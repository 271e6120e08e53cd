import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';

const executablePath = '/usr/bin/chromium';

/** Why no browser can be started; undefined when one can. */
export const browserMissing = existsSync(executablePath)
  ? undefined
  : `${executablePath} is not installed (Debian: apt-get install chromium)`;

/** Starts Debian's Chromium without a display. */
export function startBrowser(): Promise<Browser> {
  const quiet = ['no-first-run', 'disable-background-networking', 'disable-component-update', 'disable-sync'];
  const args = ['headless', 'no-sandbox', 'disable-gpu', 'disable-quic', ...quiet].map((name) => `--${name}`);
  return chromium.launch({ executablePath, args });
}
