import { execFileSync } from 'node:child_process'
import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs'
import { type Finding, idiomsIn, longCommentsIn, subjectProblem } from './rules.ts'

/**
 * `npm run lint` checks with this that texts are in plain English. Each area has a budget of findings that remain from
 * before there was this check; it may shrink and never grow. `--write` lowers the budgets to what is left, `--show AREA`
 * lists what was found there.
 */
const AREAS: Readonly<Record<string, readonly string[]>> = {
  src: ['src/**/*.{ts,js}'],
  dashboard: ['src/dashboard/**/*.{ts,tsx}'],
  manual: ['README.md', 'config/**/*.{md,yaml}', 'signatures/README.md', 'helm/README.md', 'src/*.md'],
  chart: ['helm/**/*.{yaml,tpl,txt}'],
  bench: ['bench/**/*.{ts,md}'],
  project: ['.github/*.md'],
  test: ['test/**/*.ts'],
}
const EXCEPT =
  /(^|\/)node_modules\/|^src\/dashboard\/api\/operations\.ts$|^test\/prose\/|^test\/vectors\/cases\//
const BUDGETS = 'test/prose/budget.json'

type Budgets = Record<string, number>

function lint(argv: readonly string[]): number {
  const budgets: Budgets = JSON.parse(readFileSync(BUDGETS, 'utf8'))
  const left: Budgets = {}
  let failures = 0
  for (const area of Object.keys(AREAS)) {
    const findings = findingsIn(area)
    const budget = budgets[area] ?? 0
    left[area] = Math.min(budget, findings.length)
    if (findings.length > budget) {
      failures++
      say(`${area}: ${findings.length} texts are not in plain English, ${budget} are allowed`)
    }
    if (findings.length > budget || argv.includes(area)) for (const finding of findings) say(finding)
  }
  for (const problem of subjectProblems()) {
    failures++
    say(problem)
  }
  if (argv.includes('--write')) writeFileSync(BUDGETS, `${JSON.stringify(left, null, 2)}\n`)
  return failures === 0 ? 0 : 1
}

function findingsIn(area: string): string[] {
  const files = AREAS[area]!.flatMap((pattern) => globSync(pattern)).filter((file) => !EXCEPT.test(file))
  const own = area === 'src' ? files.filter((file) => !file.startsWith('src/dashboard/')) : files
  return own.toSorted().flatMap((file) => {
    const text = readFileSync(file, 'utf8')
    const isCode = /\.[jt]sx?$/.test(file)
    const found: Finding[] = [...idiomsIn(text, isCode), ...(isCode ? longCommentsIn(text) : [])]
    return found.map(({ line, found, advice }) => `${file}:${line}: "${found}": ${advice}`)
  })
}

/** Of the commits since this check was added; none where this is not a whole git checkout. */
function subjectProblems(): string[] {
  if (!existsSync('.git')) return []
  const added = git('log', '--diff-filter=A', '--format=%H', '--', 'test/prose/lint.ts').at(-1)
  if (added === undefined) return []
  return git('log', '--no-merges', '--format=%h %s', `${added}..HEAD`).flatMap((line) => {
    const [hash, ...words] = line.split(' ')
    const problem = subjectProblem(words.join(' '))
    return problem === null ? [] : [`commit ${hash}: its subject ${problem}: ${words.join(' ')}`]
  })
}

function git(...argv: readonly string[]): string[] {
  return execFileSync('git', argv, { encoding: 'utf8' }).trim().split('\n').filter(Boolean)
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

if (import.meta.main) process.exitCode = lint(process.argv.slice(2))
