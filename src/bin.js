#!/usr/bin/env node
// The entry point of `gatehouse`, in JavaScript: a Node that is too old for TypeScript must still print the
// message below.
//
// `up` and `proxy` restart the process once, because V8 and the C library read some settings only at the
// start. By default V8 grows its young generation under load to some 150 MiB. The kernel provides these pages
// one by one, and the slowest requests of the first seconds wait for that (bench/README.md). All other V8
// settings must be set later (proxy/garbage.ts): nearly any other flag here makes V8 discard Node's
// precompiled code, which costs 50 ms per start.
//
// Each worker has one processor, which it shares with V8's helper threads. During a full garbage collection
// one helper takes half of it. Node's default of four takes four fifths, and requests wait in turns of 3 ms.
//
// The C library uses pages of 2 MiB if the kernel provides them on request. Starting a process, as the
// compilation of signatures does, copies the table of all pages, and all requests wait for that.
import module from 'node:module'
import { fileURLToPath } from 'node:url'

const [major] = process.versions.node.split('.')

if (Number(major) >= 24) {
  keepCompiledCode()
  if (process.argv[2] === 'up' || process.argv[2] === 'proxy') startAgainForTraffic()
  import('./main.ts')
} else {
  process.stderr.write(
    'gatehouse needs Node.js 24 or newer and was started by Node.js ' +
      process.versions.node +
      '.\n' +
      'Install Node.js 24, or start it through npm, which uses the Node.js 24 that was installed with it:\n' +
      '"npx gatehouse COMMAND" where it is installed, "npm run -s gatehouse -- COMMAND" in a checkout.\n',
  )
  process.exitCode = 2
}

/**
 * A checkout runs TypeScript, which Node compiles at each start: a fifth of the CPU time until the first
 * response. From the second start on, the compile cache saves that. Child processes find its folder through
 * the variable.
 */
function keepCompiledCode() {
  const self = fileURLToPath(import.meta.url)
  if (!self.endsWith('/src/bin.js') || process.env.NODE_COMPILE_CACHE !== undefined) return
  process.env.NODE_COMPILE_CACHE = self.replace(/src\/bin\.js$/, 'node_modules/.cache/gatehouse')
  module.enableCompileCache?.(process.env.NODE_COMPILE_CACHE)
}

/**
 * Replaces the process with one that has the settings described above. If the operator has set a size of the
 * young generation, it stays, and the process is not restarted; the image does this. If a process cannot
 * replace itself (Windows, a child with an IPC channel), it goes on with V8's defaults.
 */
function startAgainForTraffic() {
  const given = [...process.execArgv, process.env.NODE_OPTIONS ?? ''].join(' ')
  if (process.execve === undefined || process.connected || /[-_]semi[-_]space[-_]/.test(given)) return
  const args = ['--max-semi-space-size=16', '--v8-pool-size=1', ...process.execArgv, ...process.argv.slice(1)]
  // The later value wins, so the operator's setting overrides this one.
  const tunables = ['glibc.malloc.hugetlb=1', process.env.GLIBC_TUNABLES].filter(Boolean).join(':')
  process.execve(process.execPath, [process.execPath, ...args], { ...process.env, GLIBC_TUNABLES: tunables })
}
