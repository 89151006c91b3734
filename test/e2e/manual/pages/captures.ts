import assert from 'node:assert/strict'
import { noCapture } from '../../programs.ts'
import type { Bench, Examples } from '../bench.ts'

export const examples: Examples = [
  ['tcpdump -i any', analyzes],
  ['"kind":"tls"', printsLinesLikeThese],
]

async function analyzes({ t, folder, gate, shell }: Bench, example: string): Promise<void> {
  const [sample, live] = example.trim().split('\n') as [string, string]
  assert.match((await shell(sample)).out, /GET \/cart\?id=7/)
  if (noCapture()) return t.comment(`not captured: ${noCapture()}`)
  const port = String(gate.ready['listen']).split(':').at(-1)
  // Until it has seen it: a capture takes a moment to begin.
  const asking = `for _ in $(seq 20); do sleep 0.2; command curl -sk https://localhost:${port}/ > /dev/null; done`
  const { out } = await shell(`(${asking}) & timeout 5 bash -c "$LIVE" || true\nwait`, {
    variables: {
      LIVE: live.replace('npm run -s gatehouse --', 'gatehouse').replaceAll('port 443', `port ${port}`),
    },
  })
  assert.match(out, /t13d/, folder)
}

async function printsLinesLikeThese({ shell }: Bench, example: string): Promise<void> {
  const { out } = await shell('gatehouse analyze --json test/captures/sample.pcapng')
  alike(example, out.split('\n'))
}

/** Each line of JSON is there, but for what stands as `…`. */
function alike(example: string, lines: readonly string[]): void {
  for (const line of example.trim().split('\n')) {
    const said = JSON.parse(line)
    const found = lines
      .filter((each) => each.startsWith('{'))
      .map((each) => JSON.parse(each))
      .find(({ kind, frame }) => kind === said.kind && frame === said.frame)
    assert.ok(found, `${said.kind} in frame ${said.frame}`)
    assert.deepEqual(Object.keys(found), Object.keys(said))
    for (const [name, value] of Object.entries(said))
      if (!JSON.stringify(value).includes('…')) assert.deepEqual(found[name], value, name)
  }
}
