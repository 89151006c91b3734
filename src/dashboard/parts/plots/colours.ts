/** The current value of a style colour, light or dark, for canvas drawing. */
export function painted(name: string): string {
  const probe = document.getElementById(PROBE) ?? made()
  probe.style.color = `var(--${name})`
  return getComputedStyle(probe).color
}

function made(): HTMLElement {
  const probe = document.createElement('span')
  probe.id = PROBE
  probe.hidden = true
  document.body.append(probe)
  return probe
}

const PROBE = 'colour-probe'
