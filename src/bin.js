#!/usr/bin/env node
// Where `gatehouse` starts, in JavaScript: a Node too old for the rest must get as far as saying so.
const [major] = process.versions.node.split('.')

if (Number(major) >= 24) {
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
