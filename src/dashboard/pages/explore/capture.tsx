import { useEffect, useRef, useState } from 'preact/hooks'
import { ask } from '../../api/ask.ts'
import type { TaskPage } from '../../api/operations.ts'
import { useDoing } from '../../api/use-doing.ts'
import { whole } from '../../parts/format.ts'
import { Empty, ProblemNote } from '../../parts/states.tsx'
import { type ShownAnalysis, analysisIn } from './analysis.ts'
import { AnalysisTables } from './analysis-tables.tsx'

/** Analyses a packet capture. */
export function Capture() {
  const doing = useDoing()
  const file = useRef<HTMLInputElement>(null)
  const [isOver, setOver] = useState(false)
  const [task, setTask] = useState<{ readonly id: string; readonly name: string } | null>(null)
  const [tooLarge, setTooLarge] = useState<string | null>(null)
  const begin = (given: File | undefined) => {
    setOver(false)
    if (given === undefined) return
    setTooLarge(
      given.size > BYTES_MAX
        ? `${given.name} has ${whole(given.size)} bytes. The upload limit is ${whole(BYTES_MAX)} bytes. `
        : null,
    )
    setTask(null)
    if (given.size > BYTES_MAX) return
    void doing.run(async () => {
      const capture = await base64(given)
      const { task_id } = await ask('createTask', { body: { type: 'analyze_capture', items: [{ capture }] } })
      setTask({ id: task_id, name: given.name })
    })
  }
  return (
    <section
      class="card"
      aria-labelledby="capture"
      style={isOver ? { outline: '3px dashed var(--main)' } : {}}
      onDragOver={(event) => {
        event.preventDefault()
        setOver(true)
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault()
        begin(event.dataTransfer?.files[0])
      }}
    >
      <h2 id="capture">Packet capture</h2>
      <p>
        Drop a pcap or pcapng file here, or choose one. Gatehouse identifies the clients by their handshakes
        and requests. The file stays on this gateway.
      </p>
      <label>
        Capture file{' '}
        <input
          ref={file}
          type="file"
          disabled={doing.isDoing}
          onChange={({ currentTarget }) => begin(currentTarget.files?.[0])}
        />
      </label>
      {tooLarge !== null && (
        <p class="note bad" role="alert">
          {tooLarge}
          <code>gatehouse analyze FILE</code> reads files of any size.
        </p>
      )}
      {doing.problem !== null && <ProblemNote problem={doing.problem} />}
      {task !== null && <Followed key={task.id} {...task} />}
    </section>
  )
}

/** Shows a task until it is done. */
function Followed({ id, name }: { readonly id: string; readonly name: string }) {
  const doing = useDoing()
  const [page, setPage] = useState<TaskPage | null>(null)
  const isOver = page !== null && OVER.has(page.status)
  useEffect(() => {
    if (isOver) return
    const look = () => void doing.run(async () => setPage(await ask('getTask', { path: { task_id: id } })))
    look()
    const timer = setInterval(look, LOOK_EVERY_MS)
    return () => clearInterval(timer)
  }, [isOver])
  if (doing.problem !== null) return <ProblemNote problem={doing.problem} />
  if (!isOver)
    return (
      <p role="status">
        Reading {name}… <progress />{' '}
        <button type="button" onClick={() => void ask('cancelTask', { path: { task_id: id } })}>
          Stop
        </button>
      </p>
    )
  const [item] = page.results
  if (page.status === 'cancelled') return <p role="status">Stopped.</p>
  if (item?.status !== 'ok')
    return (
      <p class="note bad" role="alert">
        Cannot read {name}: {item?.error?.detail ?? page.error ?? page.status}.
      </p>
    )
  return <Result name={name} analysis={analysisIn(item.result)} />
}

function Result({ name, analysis }: { readonly name: string; readonly analysis: ShownAnalysis }) {
  const { format, frames, fault, found, findings } = analysis
  return (
    <>
      <p role="status">
        {name}: {format ?? 'unknown format'}, {whole(frames)} frames, {whole(found)} findings
        {found > findings.length && ` (first ${whole(findings.length)} shown)`}.
      </p>
      {fault !== null && (
        <p class="note warn">
          The file is truncated or corrupt at byte {whole(fault.offset)} ({fault.detail}). Everything before
          that was read.
        </p>
      )}
      {findings.length === 0 ? (
        <Empty title="No TLS handshakes or requests found">
          <p>
            Start the capture before the connection begins. For encrypted requests only the handshake is
            visible.
          </p>
        </Empty>
      ) : (
        <AnalysisTables analysis={analysis} name={name} />
      )}
    </>
  )
}

async function base64(file: File): Promise<string> {
  const bytes = new Uint8Array(await file.arrayBuffer())
  let text = ''
  // In pieces, because a call takes a limited number of arguments.
  for (let at = 0; at < bytes.length; at += PIECE)
    text += String.fromCharCode(...bytes.subarray(at, at + PIECE))
  return btoa(text)
}

const OVER = new Set(['completed', 'failed', 'cancelled'])
/** Base64 adds a third; the API accepts 6 MiB. */
const BYTES_MAX = 4_718_592
const PIECE = 8_192
const LOOK_EVERY_MS = 500
