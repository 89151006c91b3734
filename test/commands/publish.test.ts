import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { runCli } from '../../src/commands/cli.ts'
import { COMMANDS } from '../../src/commands/commands.ts'
import { temporaryFolder } from '../e2e/programs.ts'
import { memoryIo } from './memory-io.ts'

const POLICY = `rules:
  - {name: training, when: {purpose: training}, action: block}
  - {name: blog, when: {host: blog.test, category: crawler}, action: block}
`
const ROBOTS = 'User-agent: *\nDisallow: /cart\n# caf\u00e9\nSitemap: https://a.test/s.xml\n'

test('publish prints each form of the policy', async (t) => {
  const { run } = workbench(t)
  const robots = await run(
    'publish',
    'robots',
    '--robots',
    'robots.txt',
    '--usage',
    '--signals',
    '--license',
    'https://a.test/l.xml',
  )
  assert.deepEqual([robots.code, robots.err], [0, ''])
  assert.match(robots.out, /^Sitemap: https:\/\/a\.test\/s\.xml\nLicense: https:\/\/a\.test\/l\.xml$/m)
  assert.match(
    robots.out,
    /^User-agent: \*\nDisallow: \/cart\nContent-Usage: train-ai=n, search=y\nContent-Signal: search=yes, ai-input=yes, ai-train=no$/m,
  )
  assert.match(robots.out, /^User-agent: GPTBot$/m)
  assert.doesNotMatch(robots.out, /^User-agent: Googlebot$/m)
  const blog = await run('publish', 'robots', '--host', 'blog.test')
  assert.match(blog.out, /^User-agent: Googlebot$/m)
  assert.equal((await run('publish', 'content-usage')).out, '/ Content-Usage: train-ai=n, search=y\n')
  assert.match((await run('publish', 'rsl')).out, /<prohibits type="usage">ai-train<\/prohibits>/)
})

test('check --robots says what contradicts, and nothing of what is published', async (t) => {
  const { run, folder } = workbench(t)
  const found = await run('check', '--robots', 'robots.txt')
  assert.equal(found.code, 1)
  assert.match(found.out, /robots\.txt: nothing forbids it, but the policy refuses \/ to AI2Bot, /)
  assert.match(found.out, /robots\.txt:2: "Disallow: \/cart", but the policy lets .* have \/cart/)
  const json = JSON.parse((await run('check', '--robots', 'robots.txt', '--json')).out)
  const refused = json.contradictions.find(({ kind }: { kind: string }) => kind === 'refused')
  assert.ok(refused.user_agents.includes('GPTBot'))
  const letIn = json.contradictions.find(({ kind }: { kind: string }) => kind === 'let_in')
  assert.deepEqual([letIn.line, letIn.rule, letIn.path], [2, 'Disallow: /cart', '/cart'])
  writeFileSync(join(folder, 'published.txt'), (await run('publish', 'robots', '--usage')).out)
  const none = await run('check', '--robots', 'published.txt')
  assert.deepEqual([none.code, none.out], [0, 'robots.txt and the policy say the same to every crawler.\n'])
})

test('a rule that cannot be published is named, and wrong usage is refused', async (t) => {
  const { run, folder } = workbench(t)
  const rule = '{name: odd, when: \'request.path.startsWith("/a")\', action: block}'
  writeFileSync(join(folder, 'policy.yaml'), `rules: [${rule}]\n`)
  const odd = await run('publish', 'robots')
  assert.match(
    odd.err,
    /warning: rule "odd" is not published, because its paths stand in an expression; use `path`/,
  )
  for (const [arguments_, said] of [
    [['publish', 'rsl', '--usage'], /--usage goes with robots/],
    [['publish', 'robots', '--license', '/l.xml'], /--license must be an absolute URL/],
    [['publish', 'robots', '--robots', 'missing.txt'], /missing\.txt: /],
    [['publish', 'llms'], /FORM/],
    [['check', '--robots', 'robots.txt', '--explain', 'robots.txt'], /only one of/],
    [['check', '--host', 'a.test'], /--host goes with --robots/],
  ] as const) {
    const { code, err } = await run(...arguments_)
    assert.notEqual(code, 0)
    assert.match(err, said)
  }
})

function workbench(t: Test) {
  const folder = temporaryFolder(t)
  writeFileSync(join(folder, 'policy.yaml'), POLICY)
  writeFileSync(join(folder, 'robots.txt'), ROBOTS)
  const run = async (...given: readonly string[]) => {
    const files = given.map((each) => (/^[\w-]+\.txt$/.test(each) ? join(folder, each) : each))
    const policy = given.includes('--explain') ? [] : ['--policy', join(folder, 'policy.yaml')]
    const io = memoryIo()
    const code = await runCli(COMMANDS, [...files, ...policy], io)
    return { code, out: io.out.replaceAll(`${folder}/`, ''), err: io.err }
  }
  return { folder, run }
}
