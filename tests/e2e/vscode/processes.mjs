import { readdirSync, readFileSync } from 'node:fs';

/** Ids of the language servers that descend from a process. */
export function serverProcesses(ancestor) {
  const all = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap(describe);
  const parents = new Map(all.map(({ pid, parent }) => [pid, parent]));
  return all
    .filter(({ command }) => /^\S*python\S* .*-m cutesmith_server serve/.test(command))
    .map(({ pid }) => pid)
    .filter((pid) => descends(pid, ancestor, parents));
}

function descends(pid, ancestor, parents) {
  for (let each = pid; each !== undefined; each = parents.get(each)) {
    if (each === ancestor) {
      return true;
    }
  }
  return false;
}

function describe(name) {
  try {
    const command = readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ');
    const status = readFileSync(`/proc/${name}/status`, 'utf8');
    return [{ pid: Number(name), parent: Number(/^PPid:\s+(\d+)$/m.exec(status)[1]), command }];
  } catch {
    return []; // it ended meanwhile
  }
}
