import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { goMissing, ToolError } from './error.ts';

/**
 * The folder of a Go module, in the version that the go.mod in a folder beside this file requires. Go downloads it on the
 * first use, and verifies it with go.sum.
 * @throws ToolError when Go is missing or the module cannot be downloaded.
 */
export async function moduleFolder(folder: string, module: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const options = {
    cwd: join(import.meta.dirname, folder),
    env: { ...process.env, GOWORK: 'off', GOFLAGS: '' },
  };
  execFile('go', ['mod', 'download', '-json', module], options, (error, stdout, stderr) => {
    if (error?.code === 'ENOENT') {
      reject(goMissing(`download ${module}`));
    } else if (error) {
      reject(new ToolError('DownloadFailed', `go mod download ${module} failed:\n${stderr}${stdout}`));
    } else {
      resolve((JSON.parse(stdout) as { Dir: string }).Dir);
    }
  });
  return await promise;
}
