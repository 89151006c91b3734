import { spawn } from 'node:child_process'
import { once } from 'node:events'

/** Does it while this process gets no descriptor more than it has. */
export async function withoutDescriptors<Result>(work: () => Promise<Result>): Promise<Result> {
  // Another process has to lift the limit: to start it takes descriptors.
  const limiter = spawn('sh', ['-c', LIMIT, 'limiter', String(process.pid)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  await once(limiter.stdout, 'data')
  try {
    return await work()
  } finally {
    limiter.stdin.end()
    await once(limiter, 'exit')
  }
}

/** The soft limit alone: the hard one could not be raised again without a right. */
const LIMIT = `
  before=$(prlimit --pid "$1" --nofile --noheadings --output SOFT)
  prlimit --pid "$1" --nofile=3:
  echo limited
  read -r _
  prlimit --pid "$1" --nofile="$before":
`
