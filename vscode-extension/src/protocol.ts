/**
 * The one mirror of the server's own protocol: what `docs/contracts.md` ("Server and editor") names beyond LSP.
 * The Python side is `server/cutesmith_server/protocol.py`; a test compares the names.
 */

/** Commands of `workspace/executeCommand`. Each takes one `ClassRef`; `check` takes a `CheckRef`. */
export const ServerCommand = {
  generate: 'cutesmith.generate',
  improve: 'cutesmith.improve',
  cancel: 'cutesmith.cancel',
  accept: 'cutesmith.accept',
  acceptFile: 'cutesmith.acceptFile',
  reject: 'cutesmith.reject',
  remove: 'cutesmith.remove',
  check: 'cutesmith.check',
  review: 'cutesmith.review',
  addInputs: 'cutesmith.addInputs',
  showJobLog: 'cutesmith.showJobLog',
  approve: 'cutesmith.approve',
  pause: 'cutesmith.pause',
  resume: 'cutesmith.resume',
  revalidate: 'cutesmith.revalidate',
  allowLowered: 'cutesmith.allowLowered',
  watch: 'cutesmith.watch',
  unwatch: 'cutesmith.unwatch',
} as const;
export type ServerCommand = (typeof ServerCommand)[keyof typeof ServerCommand];

/** Request: no parameters but `{}`, answered with a `JobsResult`. */
export const JOBS_REQUEST = 'cutesmith/jobs';

/** Notification from the server, with a `JobState`. */
export const JOB_CHANGED = 'cutesmith/jobChanged';

/** Request: `{}`, answered with a `ModulesResult`. */
export const MODULES_REQUEST = 'cutesmith/modules';

/** Request: a `ClassRef`, answered with a `Proposal`, or null where nothing could be accepted as things are. */
export const PROPOSAL_REQUEST = 'cutesmith/proposal';

/** Request: a `ClassRef`, answered with a `KernelReport`, or null where no candidate was tried. */
export const REPORT_REQUEST = 'cutesmith/report';

/** Request of the server: `{}`, answered with the `EditorModel` that would be asked. */
export const LANGUAGE_MODEL_REQUEST = 'cutesmith/languageModel';

/** Request of the server: a `ChatRequest`, answered with a `ChatAnswer`. An error's `data` is a `ChatRefusal`. */
export const CHAT_REQUEST = 'cutesmith/chat';

/** A module class: `class` is its qualified name within the file. */
export interface ClassRef {
  readonly uri: string;
  readonly class: string;
}

export interface CheckRef extends ClassRef {
  /** Absolute path of the kernel file to validate. */
  readonly candidate: string;
}

export type State =
  'idle' | 'running' | 'paused' | 'ready' | 'compiled' | 'failed' | 'accepted' | 'stale' | 'cancelled' | 'reference';

export interface JobState extends ClassRef {
  readonly state: State;
  readonly stage: string;
  readonly message: string;
  readonly best: Candidate | null;
}

/** The evaluator's `Candidate`, as far as an editor needs it. */
export interface Candidate {
  readonly id: string;
  readonly ok: boolean | null;
  readonly speedup: { readonly eager: number | null; readonly compile: number | null } | null;
}

export interface JobsResult {
  readonly jobs: readonly JobState[];
}

/** A candidate of a class's last job, in words. `line` (1-based) is that of its first error in its own file. */
export interface CandidateRow {
  readonly id: string;
  readonly origin: string;
  readonly stage: string;
  readonly ok: boolean | null;
  readonly precision: string | null;
  readonly headline: string;
  readonly path: string | null;
  readonly line: number | null;
  readonly isBest: boolean;
  readonly isAccepted: boolean;
}

/** A module class. `line` and `kernelLines` (of an accepted kernel) are 1-based; null: the file has it no more. */
export interface ModuleRow extends ClassRef {
  readonly state: State;
  readonly stage: string;
  readonly message: string;
  readonly line: number | null;
  readonly kernelLines: readonly number[];
  readonly candidates: readonly CandidateRow[];
}

/** `device`: where the latest job ran; `dollars`: what models cost since the server began, null where not known. */
export interface ModulesResult {
  readonly modules: readonly ModuleRow[];
  readonly device: string | null;
  readonly dollars: number | null;
}

/** What accepting would make of a class's file: `after` is its whole text. */
export interface Proposal {
  readonly candidate: string;
  readonly headline: string;
  readonly after: string;
  readonly kernel: { readonly path: string; readonly source: string };
}

/** A page about a class's kernel; `source` is the path of the file that its links to lines are of. */
export interface KernelReport {
  readonly html: string;
  readonly source: string | null;
}

/** A language model of the editor: its name, `vendor/id`, and who provides it. */
export interface EditorModel {
  readonly name: string;
  readonly provider: string;
}

/** A form that a model's answer may have, with a JSON schema. */
export interface ChatTool {
  readonly name: string;
  readonly description: string;
  readonly input_schema: object;
}

/** One question for a model. `maxTokens`: how long the answer may be. */
export interface ChatRequest {
  readonly model: string;
  readonly system: string;
  readonly user: string;
  readonly tools: readonly ChatTool[];
  readonly maxTokens: number;
}

/** A tool that a model called, with the JSON value it passed. */
export interface ToolUse {
  readonly name: string;
  readonly input: unknown;
}

/** `usage`: tokens, as the model's provider counts them. `problem`: why the answer is not whole, after "the answer". */
export interface ChatAnswer {
  readonly text: string;
  readonly calls: readonly ToolUse[];
  readonly usage: { readonly input: number; readonly output: number };
  readonly problem: string | null;
}

/** `mayCost`: the model may have begun to work on what it was asked. */
export interface ChatRefusal {
  readonly mayCost: boolean;
}

/**
 * `initializationOptions`, and the `cutesmith` section of the configuration. What the user did not set is left out: the
 * project's pyproject.toml may say it, and the server has the defaults.
 */
export interface ServerOptions {
  readonly interpreter?: string;
  readonly device?: string;
  readonly archs?: readonly string[];
  readonly watch?: string;
  readonly watchRegenerates?: boolean;
  readonly watchMinutes?: number;
  readonly confirmEdits?: boolean;
  readonly askModel?: boolean;
  readonly modelProvider?: string;
  readonly trusted?: boolean;
}
