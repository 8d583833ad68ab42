# The code of a task; task_program.py holds it as bytes (compared in tests/vm/test_task_program.py).
# It uses no stack, because tasks that share memory would share it too.  r12 is the mailbox:
#   0 kind    8 number    16 to 56 six arguments    64 result
# Arguments of a race: number of steps, number of passes, address of the steps, address of the gate.
# The gate counts the tasks that have not arrived yet.  A step has 128 bytes:
#   0 number    8 to 48 six arguments    56 four pairs (count, value)    120 count of other values

.intel_syntax noprefix
.text

# long enter(flags, mailbox): clone(2).  The parent returns, the child serves its mailbox.
enter:
    mov r9, rsi
    xor esi, esi
    xor edx, edx
    xor r10d, r10d
    xor r8d, r8d
    mov eax, 56                 # clone
    syscall
    test rax, rax
    jz born
    ret
born:
    mov r12, r9
    jmp serve

# Entry point of the program: argc is the number of the mailbox.
start:
    mov rbx, [rsp]
    mov eax, 9                  # mmap
    mov edi, 0x70000000         # MAILBOXES
    mov esi, 0x40000            # COUNT * MAILBOX
    mov edx, 3                  # PROT_READ | PROT_WRITE
    mov r10d, 0x11              # MAP_SHARED | MAP_FIXED
    mov r8d, 900                # MAILBOXES_FD
    xor r9d, r9d
    syscall
    shl rbx, 14                 # MAILBOX
    lea r12, [rax+rbx]
    xor eax, eax                # The result of execve.

answer:
    mov [r12+64], rax
    mov dword ptr [r12], 0
    mov rdi, r12
    mov esi, 1                  # FUTEX_WAKE
    mov edx, 1
    mov eax, 202                # futex
    syscall

serve:
    mov eax, [r12]
    cmp eax, 1                  # CALL64
    je call64
    cmp eax, 2                  # CALL32
    je call32
    cmp eax, 3                  # CLONE
    je clone
    cmp eax, 4                  # RACE
    je race
    mov rdi, r12
    xor esi, esi                # FUTEX_WAIT
    mov edx, eax
    xor r10d, r10d
    mov eax, 202                # futex
    syscall
    jmp serve

call32:
    mov eax, [r12+8]
    mov ebx, [r12+16]
    mov ecx, [r12+24]
    mov edx, [r12+32]
    mov esi, [r12+40]
    mov edi, [r12+48]
    mov ebp, [r12+56]
    int 0x80
    cdqe
    jmp answer

call64:
    mov rax, [r12+8]
    mov rdi, [r12+16]
    mov rsi, [r12+24]
    mov rdx, [r12+32]
    mov r10, [r12+40]
    mov r8, [r12+48]
    mov r9, [r12+56]
    syscall
    jmp answer

# Arguments: flags, mailbox of the child.
clone:
    mov rdi, [r12+16]
    xor esi, esi
    xor edx, edx
    xor r10d, r10d
    xor r8d, r8d
    mov eax, 56                 # clone
    syscall
    test rax, rax
    jnz answer
    mov r12, [r12+24]
    jmp serve

race:
    mov r13, [r12+16]
    mov r14, [r12+32]
    lock dec dword ptr [r14]
gate:
    pause
    cmp dword ptr [r14], 0
    jg gate
pass:
    mov rbx, [r12+24]
    mov r15, [r12+8]
step:
    mov rax, [rbx]
    mov rdi, [rbx+8]
    mov rsi, [rbx+16]
    mov rdx, [rbx+24]
    mov r10, [rbx+32]
    mov r8, [rbx+40]
    mov r9, [rbx+48]
    test rax, rax
    js add
    syscall
    test rax, rax
    jnz count_result
    cmp qword ptr [rbx], 56     # clone: the child finds its mailbox in the step
    jne count_result
    mov r12, [rbx+24]
    jmp serve
add:
    lock add dword ptr [rdi], esi
    dec rdx
    jnz add
    xor eax, eax
count_result:
    lea r14, [rbx+56]
    mov ecx, 4                  # TALLIED
search:
    cmp qword ptr [r14], 0
    je new
    cmp [r14+8], rax
    je count
    add r14, 16
    dec ecx
    jnz search
    jmp count
new:
    mov [r14+8], rax
count:
    inc qword ptr [r14]
    sub rbx, -128               # STEP
    dec r15
    jnz step
    dec r13
    jnz pass
    xor eax, eax
    jmp answer
