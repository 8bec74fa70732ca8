;;; Emacs with eglot against the real server: generate, review, accept, undo, reject.  -*- lexical-binding: t -*-
;;; FILE is the module, SERVER the server's interpreter.  One line per step on stdout; a failure ends with status 1.
(require 'package)
(package-initialize)
(require 'eglot)
(require 'cl-lib)

(defvar my-file (getenv "FILE"))
(defvar my-said nil)
(defvar my-asked 0)

(defun my-step (name &rest words)
  (princ (concat name (if words (concat ": " (mapconcat (lambda (each) (format "%s" each)) words " | ")) "") "\n")))

(defun my-wait (what seconds condition)
  (let ((end (+ (float-time) seconds)))
    (while (not (funcall condition))
      (when (> (float-time) end)
        (error "%s did not come; said: %S" what my-said))
      (accept-process-output nil 0.05)
      (with-current-buffer (find-buffer-visiting my-file)
        (eglot--signal-textDocument/didChange)))))

(defun my-actions ()
  "The code actions on the class's name, as (title . action)."
  (goto-char (point-min))
  (re-search-forward "^class ")
  (mapcar (lambda (each) (cons (plist-get each :title) each)) (eglot-code-actions (point) (point))))

(defun my-act (title)
  "Run the one action whose title starts so."
  (let* ((actions (my-actions))
         (found (cdr (cl-find-if (lambda (each) (string-prefix-p title (car each))) actions)))
         (command (plist-get found :command)))
    (unless command
      (error "no action %s among %S; said: %S" title (mapcar #'car actions) my-said))
    (eglot-execute-command (eglot-current-server) (plist-get command :command) (plist-get command :arguments))))

(defun my-diagnostics ()
  (mapcar #'flymake-diagnostic-text (flymake-diagnostics)))

(defun my-has (words)
  (lambda () (cl-some (lambda (each) (string-match-p (regexp-quote words) each)) (my-diagnostics))))

(defun my-text ()
  (buffer-substring-no-properties (point-min) (point-max)))

(advice-add 'eglot--message :before (lambda (&rest words) (push (apply #'format words) my-said)))
;; A batch Emacs has nobody to ask.
(advice-add 'completing-read :override
            (lambda (prompt choices &rest _)
              (setq my-asked (1+ my-asked))
              (or (car (member "Accept" choices)) (error "an unexpected question: %s" prompt))))

;; eglot asks before it applies an edit that a server sends.
(advice-add 'y-or-n-p :override (lambda (&rest _) (setq my-asked (1+ my-asked)) t))

(defun my-connect ()
  (setq eglot-sync-connect 20 eglot-connect-timeout 20)
  (find-file my-file)
  (python-mode)
  (let ((project (cons 'transient (file-name-directory my-file)))
        (server (list (getenv "SERVER") "-m" "cutesmith_server" "serve" :initializationOptions
                      '(:archs ["sm_90a"] :device "none" :trusted t))))
    (eglot (list 'python-mode) project 'eglot-lsp-server server "python"))
  (my-wait "the server" 20 #'eglot-current-server))

(defun my-run ()
  (my-connect)
  (let ((original (my-text)))
    (my-act "Generate CuTe kernel")
    (my-wait "the compiled kernel" 120 (my-has "compiled, not validated"))
    (my-step "generated" (car (my-diagnostics)))

    (my-act "Review CuTe kernel")
    (my-wait "the paths to read" 10
             (lambda () (cl-some (lambda (each) (string-match-p "To read: .*\\.diff, .*\\.py" each)) my-said)))
    (my-step "review named the files")

    (undo-boundary)
    (my-act "Accept CuTe kernel")
    (my-wait "the accepted kernel" 10
             (lambda () (string-match-p (regexp-quote "new_gelu_cute.supports(self, x)") (my-text))))
    (my-wait "no diagnostics" 10 (lambda () (null (my-diagnostics))))
    (my-step "accepted")

    (undo-boundary)
    (undo)
    (unless (string= (my-text) original)
      (error "one undo does not restore the file: %s" (my-text)))
    (my-wait "the offer again" 10 (my-has "compiled, not validated"))
    (my-step "undone")

    (my-act "Reject CuTe kernel")
    (my-wait "no diagnostics" 10 (lambda () (null (my-diagnostics))))
    (my-step "rejected" (car (cl-find-if (lambda (each) (string-prefix-p "Generate" (car each))) (my-actions))))
    (my-step "asked" my-asked)
    (eglot-shutdown (eglot-current-server))))

(condition-case problem
    (my-run)
  (error (my-step "FAIL" (error-message-string problem))
         (kill-emacs 1)))
(kill-emacs 0)
