import { useState } from 'preact/hooks'
import { short, percent } from '../../parts/format.ts'
import { Plot } from '../../parts/plots/plot.tsx'
import { ProblemNote } from '../../parts/states.tsx'
import { VERDICTS } from './names.ts'
import { type Seconds, sumOf } from '../../../manage/intake/traffic.ts'
import { type HeardTraffic, useTraffic } from './use-traffic.ts'

/** Traffic of the last minutes, second by second. */
export function Now() {
  const { seconds, isOpen, problem } = useTraffic()
  const [openedS] = useState(() => Date.now() / 1_000)
  return (
    <section class="card" aria-labelledby="now">
      <div class="page-head">
        <h2 id="now">The last five minutes</h2>
        <Hearing isOpen={isOpen} problem={problem} />
      </div>
      {problem !== null && <ProblemNote problem={problem} />}
      <Figures seconds={seconds} />
      <Plot
        title="Requests per second"
        at={seconds.at}
        isStacked
        lines={VERDICTS.map(({ verdict, label, colour }) => ({
          ...{ label, colour },
          values: seconds.traffic.map((second) =>
            second === null ? null : (second.by_verdict[verdict] ?? 0),
          ),
        }))}
      />
      {seconds.at[0]! < openedS && (
        <p class="soft">From before this page was opened: averages of a minute.</p>
      )}
    </section>
  )
}

function Figures({ seconds }: { readonly seconds: Seconds }) {
  const { requests, by_verdict, by_action } = sumOf(seconds, MINUTE)
  const isKnown = seconds.traffic.slice(-MINUTE).some((second) => second !== null)
  const agents = by_verdict['agent'] ?? 0
  const count = (value = 0) => (isKnown ? short(Math.round(value)) : '–')
  const figures = [
    { name: 'Requests per minute', value: count(requests) },
    { name: 'From agents', value: count(agents), share: requests === 0 ? null : agents / requests },
    { name: 'From people', value: count(by_verdict['human']) },
    { name: 'Tagged', value: count(by_action['tag']) },
    { name: 'Blocked', value: count(by_action['block']) },
  ]
  return (
    <dl class="figures">
      {figures.map(({ name, value, share = null }) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            {value} {share !== null && <small>{percent(share)}</small>}
          </dd>
        </div>
      ))}
    </dl>
  )
}

function Hearing({ isOpen, problem }: Omit<HeardTraffic, 'seconds'>) {
  const text = isOpen ? 'Listening' : problem === null ? 'Connecting…' : 'Not connected'
  return (
    <p role="status" class="soft">
      <span class={`badge ${isOpen ? 'good' : problem === null ? 'plain' : 'bad'}`}>{text}</span>
    </p>
  )
}

const MINUTE = 60
