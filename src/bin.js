#!/usr/bin/env node
// Where `gatehouse` starts, in JavaScript: a Node too old for the rest must get as far as saying so.
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
 * A checkout runs TypeScript, which Node reads and compiles at each start: a fifth of the processor time until the first
 * answer. It is kept from the second start on. Child processes find the folder in the variable.
 */
function keepCompiledCode() {
  const self = fileURLToPath(import.meta.url)
  if (!self.endsWith('/src/bin.js') || process.env.NODE_COMPILE_CACHE !== undefined) return
  process.env.NODE_COMPILE_CACHE = self.replace(/src\/bin\.js$/, 'node_modules/.cache/gatehouse')
  module.enableCompileCache?.(process.env.NODE_COMPILE_CACHE)
}

/**
 * V8 reads the size of its young generation once, before it runs anything. Left alone it grows it under load to some
 * 150 MiB of pages that it has to be given one by one, which is what the slowest requests of the first seconds wait for
 * (bench/README.md). Whoever sets a size keeps it, and is not started twice, as in the image; where a process can't replace
 * itself (Windows, a child that talks to its parent), it goes on with V8's. What else V8 is told can be told it later
 * (proxy/garbage.ts), and has to be: nearly any other flag here has it throw away what Node has compiled beforehand of its
 * own code, which is 50 ms of each start.
 *
 * Each worker has a processor, which it shares with the threads that help V8. One helper takes half of it while the whole
 * heap is looked through; four, which Node starts with, take four fifths, and a request waits for that in turns of 3 ms.
 *
 * The C library, too, reads once how memory is to be had: in pages of 2 MiB where the kernel gives them on request. To
 * start a process, which is how signatures are compiled, is to copy a table of all pages, and everybody waits for it.
 */
function startAgainForTraffic() {
  const given = [...process.execArgv, process.env.NODE_OPTIONS ?? ''].join(' ')
  if (process.execve === undefined || process.connected || /[-_]semi[-_]space[-_]/.test(given)) return
  const args = ['--max-semi-space-size=16', '--v8-pool-size=1', ...process.execArgv, ...process.argv.slice(1)]
  // Of two that say different things, the later one has the last word.
  const tunables = ['glibc.malloc.hugetlb=1', process.env.GLIBC_TUNABLES].filter(Boolean).join(':')
  process.execve(process.execPath, [process.execPath, ...args], { ...process.env, GLIBC_TUNABLES: tunables })
}
